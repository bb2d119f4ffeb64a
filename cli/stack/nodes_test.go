package stack

import (
	"log/slog"
	"slices"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
)

// TestNodesHaveAnExecutorOfEachType checks the executors of nodes against the table of task types.
func TestNodesHaveAnExecutorOfEachType(t *testing.T) {
	s := &Stack{conn: &workers.Connection{}}
	_, executors, err := s.newExecutors(Config{Nodes: make([]NodeConfig, 1), Logger: slog.New(slog.DiscardHandler)}, nil, t.TempDir(), nil)
	for _, c := range s.closers {
		t.Cleanup(func() { _ = c.stop() })
	}
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, name := range v1.TaskTypes() {
		if kind, _ := v1.FindTaskType(name); kind.OnNode {
			want = append(want, name)
		}
	}
	for _, e := range executors {
		got = append(got, e.Type())
	}
	if !slices.Equal(got, want) {
		t.Errorf("nodes have executors of %v; the table has %v", got, want)
	}
}
