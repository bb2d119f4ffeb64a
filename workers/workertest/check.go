package workertest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
)

// Summary formats a run with one line per task, for the message of a failed test.
func Summary(run *v1.Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "run %s: %s %s %s\n", run.GetId(), run.GetState(), run.GetReason(), run.GetError())
	for _, name := range slices.Sorted(maps.Keys(run.GetTasks())) {
		t := run.GetTasks()[name]
		fmt.Fprintf(&b, "  %s: %s %q %q on %q, attempt %d, exit code %d\n", name, t.GetState(), t.GetReason(), t.GetError(),
			t.GetNode(), t.GetAttempt(), t.GetResult().GetExitCode())
	}
	return b.String()
}

// CheckRun checks the final state of a run, and that of some of its tasks: "state" or "state reason".
func CheckRun(t *testing.T, run *v1.Run, state string, tasks map[string]string) {
	t.Helper()
	if run.GetState() != state || len(run.GetTasks()) < len(tasks) {
		t.Fatalf("want the run %s with tasks %v, got\n%s", state, tasks, Summary(run))
	}
	for name, want := range tasks {
		task := run.GetTasks()[name]
		state, reason, hasReason := strings.Cut(want, " ")
		if task.GetState() != state || hasReason && task.GetReason() != reason {
			t.Errorf("task %s: want %s, got\n%s", name, want, Summary(run))
		}
	}
}
