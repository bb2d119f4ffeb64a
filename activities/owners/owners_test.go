package owners

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
)

// TestTermsOfOwnersAreStored checks that share and quota are set apart from each other, and that defaults are not listed.
func TestTermsOfOwnersAreStored(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	all := New(s, time.Now)
	set := func(name string, share *v1.Share, quota *v1.Quota) error {
		_, err := all.Set(t.Context(), name, share, quota, "root")
		return err
	}
	for _, err := range []error{
		set("team", &v1.Share{Weight: 2, Members: []string{"cy", "bob"}}, nil), set("team", nil, &v1.Quota{Cores: 8}), set("ann", nil, &v1.Quota{Runs: 3}),
		set("di", &v1.Share{Weight: 5}, nil), set("di", &v1.Share{Weight: 1}, nil),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	list, warnings, err := all.List(t.Context())
	if err != nil || len(warnings) > 0 || len(list) != 2 {
		t.Fatalf("%v, %v, %v", list, warnings, err)
	}
	if team := list[1]; list[0].GetName() != "ann" || team.GetQuota().GetCores() != 8 || strings.Join(team.GetShare().GetMembers(), " ") != "bob cy" || team.GetUpdatedBy() != "root" {
		t.Errorf("listed %v", list)
	}
	for name, share := range map[string]*v1.Share{
		"others": {Weight: 1, Members: []string{"bob"}}, // already in team
		"all":    {Weight: 1, Members: []string{"team"}},
		"cy":     {Weight: 1, Members: []string{"eve"}},
		"self":   {Weight: 1, Members: []string{"self"}},
	} {
		if err := set(name, share, nil); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s with %v: %v", name, share, err)
		}
	}
}

// TestUseOfOwnersIsStored checks that a later reader finds what was written last.
func TestUseOfOwnersIsStored(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	all := New(s, time.Now)
	if use, err := all.Use(t.Context()); err != nil || len(use.GetOwners()) > 0 {
		t.Fatalf("%v, %v", use, err)
	}
	want := map[string]*v1.OwnerUse{"ann": {Lately: 0.5}}
	if err := all.PutUse(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if use, err := all.Use(t.Context()); err != nil || !proto.Equal(use.GetOwners()["ann"], want["ann"]) || use.GetAt() == nil {
		t.Errorf("%v, %v", use, err)
	}
}
