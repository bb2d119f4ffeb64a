package environments

import (
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"switchyard/dev/servicetest"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// library returns fakes with environments in every state.
func library() *fakes {
	return &fakes{
		kept: map[string]*v1.Environment{
			"base":  {Name: "base", State: v1.EnvironmentReady, Version: 1, Archive: "aa/1"},
			"just":  {Name: "just", State: v1.EnvironmentReady, Version: 1, Archive: "bb/1"},
			"tools": {Name: "tools", State: v1.EnvironmentReady, Version: 3, Archive: "cc/1"},
			"worn":  {Name: "worn", State: v1.EnvironmentReady, Version: 2, Archive: "dd/1"},
		},
		creations: map[string]*v1.Environment{
			"just":  {Name: "just", State: v1.EnvironmentCreating, Version: 1, Archive: "bb"}, // its workflow is about to end
			"new":   {Name: "new", State: v1.EnvironmentCreating, Version: 1, Size: 5, Archive: "ee"},
			"tools": {Name: "tools", State: v1.EnvironmentCreating, Version: 4, Size: 7, Archive: "ff"},
			"worn":  {Name: "worn", State: v1.EnvironmentFailed, Version: 3, Error: "no space", Archive: "gg"},
			"lost":  {Name: "lost", State: v1.EnvironmentFailed, Version: 1, Error: "no image", Archive: "hh"},
		},
		users: map[string][]string{"base": {"r1", "r2", "r3", "r4", "r5", "r6"}, "worn": {"r1"}},
	}
}

func TestListMergesReadyAndCreatingEnvironments(t *testing.T) {
	s := library().service()
	var got []string
	for _, page := range servicetest.Pages(t, t.Context(), s.ListEnvironments, &v1.ListEnvironmentsRequest{PageSize: 2}) {
		for _, e := range page.GetItems() {
			got = append(got, strings.TrimSpace(e.GetName()+" "+e.GetState()+" "+e.GetCreation().GetState()+" "+e.GetCreation().GetError()))
		}
		if len(page.GetItems()) > 2 {
			t.Errorf("a page has %d items", len(page.GetItems()))
		}
	}
	want := []string{"base ready", "just ready", "lost failed", "new creating", "tools ready creating", "worn ready failed no space"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	servicetest.Refused(t, t.Context(), s.ListEnvironments, &v1.ListEnvironmentsRequest{PageToken: "x"}, connect.CodeInvalidArgument)
}

func TestGetShowsReadyAndNextVersion(t *testing.T) {
	s := library().service()
	res, err := s.GetEnvironment(t.Context(), connect.NewRequest(&v1.GetEnvironmentRequest{Name: "tools"}))
	if e := res.Msg.GetEnvironment(); err != nil || e.GetVersion() != 3 || e.GetState() != v1.EnvironmentReady || e.GetCreation().GetVersion() != 4 || e.GetCreation().GetSize() != 7 {
		t.Errorf("%v, %v", res, err)
	}
	for name, says := range map[string]string{"tolls": "did you mean tools?", "nwe": "did you mean new?", "../x": `no environment "../x"`} {
		servicetest.Refused(t, t.Context(), s.GetEnvironment, &v1.GetEnvironmentRequest{Name: name}, connect.CodeNotFound, says)
	}
}

func TestDeleteRefusesAnEnvironmentInUse(t *testing.T) {
	f := library()
	remove := func(name string, force bool) error {
		_, err := f.service().DeleteEnvironment(t.Context(), connect.NewRequest(&v1.DeleteEnvironmentRequest{Name: name, Force: force}))
		return err
	}
	if err := remove("base", false); rpcerror.CodeOf(err) != connect.CodeAborted || !strings.Contains(err.Error(), "open runs r1, r2, r3, r4, r5 and others name it") || !strings.Contains(err.Error(), "--force") || f.kept["base"] == nil {
		t.Errorf("%v", err)
	}
	if err := remove("worn", false); rpcerror.CodeOf(err) != connect.CodeAborted || !strings.Contains(err.Error(), "open run r1 names it") || len(f.forgotten) != 0 {
		t.Errorf("%v", err)
	}
	if err := remove("base", true); err != nil || f.kept["base"] != nil {
		t.Errorf("by force: %v", err)
	}
	if err := remove("base", true); rpcerror.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("again: %v", err)
	}
	if len(f.ended)+len(f.forgotten) != 0 {
		t.Errorf("ended %v, forgotten %v", f.ended, f.forgotten)
	}
}

func TestDeleteCancelsACreationAndKeepsTheReadyVersion(t *testing.T) {
	f := library()
	for _, name := range []string{"new", "tools", "lost", "worn"} {
		res, err := f.service().DeleteEnvironment(t.Context(), connect.NewRequest(&v1.DeleteEnvironmentRequest{Name: name, Force: true}))
		if err != nil || res.Msg.GetEnvironment().GetName() != name {
			t.Errorf("%s: %v, %v", name, res, err)
		}
	}
	if !slices.Equal(f.ended, []string{"new", "tools"}) || !slices.Equal(f.forgotten, []string{"lost", "worn"}) || f.kept["tools"] == nil || f.kept["worn"] != nil {
		t.Errorf("ended %v, forgotten %v, kept %v", f.ended, f.forgotten, f.kept)
	}
}
