package workers

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	v1 "switchyard/proto/switchyard/v1"
)

// away is an executor that currently cannot run anything.
type away struct {
	executor.Executor
	why error
}

func (a away) Capabilities() executor.Capabilities {
	return executor.Capabilities{Available: func() error { return a.why }}
}

// TestAvailable checks that a node offers exactly the types that it can run.
func TestAvailable(t *testing.T) {
	shell, boxes := fake.New("shell", nil), fake.New("container", nil)
	for want, why := range map[string]error{"container shell": nil, "shell": errors.New("no engine")} {
		got := available([]executor.Executor{shell, away{boxes, why}})
		if len(got) == 0 || !slices.IsSorted(got) || slices.Contains(got, "container") != (why == nil) || !slices.Contains(got, "shell") {
			t.Errorf("with error %v: %v, want %s", why, got, want)
		}
	}
}

func TestCapabilitiesFollowWhatTheNodeFinds(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	given := map[string]string{"gpu": "nvidia"}
	var ids, names []string
	cfg := NodeConfig{
		Capabilities: given,
		Sessions:     func(context.Context) []string { return ids },
		Clusters:     func() []string { return names },
	}
	for _, test := range []struct {
		ids, names []string
		want       map[string]string
	}{
		{nil, nil, map[string]string{"gpu": "nvidia", "artifacts": "true", "workspaces": "true", "gangs": "true"}},
		{[]string{"s-1"}, []string{"prod", "staging"}, map[string]string{"gpu": "nvidia", "artifacts": "true", "workspaces": "true", "gangs": "true", v1.SessionCapability("s-1"): "true", "kube/prod": "true", "kube/staging": "true"}},
		{nil, []string{"staging"}, map[string]string{"gpu": "nvidia", "artifacts": "true", "workspaces": "true", "gangs": "true", "kube/staging": "true"}},
	} {
		ids, names = test.ids, test.names
		if got := withFound(t.Context(), cfg); !maps.Equal(got, test.want) {
			t.Errorf("%v and %v make %v", ids, names, got)
		}
	}
	if got := withFound(t.Context(), NodeConfig{Capabilities: given}); len(got) != 4 || got["artifacts"] != "true" || len(given) != 1 {
		t.Errorf("a node that finds nothing has %v", got)
	}
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := withFound(t.Context(), cfg); got["git"] != "true" {
		t.Errorf("a node with git has %v", got)
	}
}
