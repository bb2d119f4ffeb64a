package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestOnlyParentsOfDeadProcessesAreRemoved(t *testing.T) {
	base := t.TempDir()
	alive, err := NewParent(base)
	if err != nil {
		t.Fatal(err)
	}
	defer alive.dir.Close()
	kept := []string{"switchyard-kubernetes", "switchyard-worker.service", "switchyard-1-2.scope", "switchyard-7", "other-1-2", filepath.Base(alive.Path)}
	for _, name := range append([]string{"switchyard-4711-1234567890"}, kept...) {
		if err := os.MkdirAll(filepath.Join(base, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	RemoveStale(base)
	left, err := os.ReadDir(base)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range left {
		names = append(names, entry.Name())
	}
	slices.Sort(kept)
	if !slices.Equal(names, kept) {
		t.Errorf("there are %q, want %q", names, kept)
	}
}
