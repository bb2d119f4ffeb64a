package workers

import (
	"errors"
	"slices"
	"testing"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
)

// away is an executor that cannot run anything now.
type away struct {
	executor.Executor
	why error
}

func (a away) Available() error { return a.why }

// A node offers what it can run, and nothing else.
func TestAvailable(t *testing.T) {
	shell, boxes := fake.New("shell", nil), fake.New("container", nil)
	for want, why := range map[string]error{"container shell": nil, "shell": errors.New("no engine")} {
		got := available([]executor.Executor{shell, away{boxes, why}})
		if len(got) == 0 || !slices.IsSorted(got) || slices.Contains(got, "container") != (why == nil) || !slices.Contains(got, "shell") {
			t.Errorf("with error %v: %v, want %s", why, got, want)
		}
	}
}
