package workers

import (
	"strings"
	"testing"

	"switchyard/activities/store"
	"switchyard/activities/store/storetest"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

func TestNodeWithTheStoreOfANewerProgramHasAProblem(t *testing.T) {
	t.Parallel()
	for level, want := range map[int]string{historyv1.ReadableDataLevel(): "", historyv1.ReadableDataLevel() + 1: "since v9.0.0 has used it"} {
		s := storetest.Open(t, t.TempDir())
		if err := s.Put(t.Context(), store.LevelKey(level), []byte("v9.0.0")); err != nil {
			t.Fatal(err)
		}
		n := &nodeStore{store: s}
		for range 2 {
			problem := n.read(t.Context())
			if (problem == nil) != (want == "") || problem != nil && !strings.Contains(*problem, want) {
				t.Errorf("level %d: %v", level, problem)
			}
		}
	}
}
