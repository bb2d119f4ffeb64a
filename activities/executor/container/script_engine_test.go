//go:build engines

package container_test

import (
	"testing"

	containers "switchyard/activities/executor/container"
)

func TestCommandOfSeveralLinesEndsAtTheFirstThatFails(t *testing.T) {
	e := newExecutor(t, containers.Options{})
	a, out, _ := attempt(t, map[string]any{"command": "echo $1\ncd /nonexistent 2>/dev/null || false\necho deployed\n", "args": []any{"a"}})
	r, err := e.Run(t.Context(), a, func() {})
	if err != nil || r.ExitCode != 1 || out.String() != "a\n" {
		t.Errorf("result %+v, printed %q, error %v", r, out, err)
	}
}
