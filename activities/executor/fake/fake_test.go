package fake_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
)

func attempt(task string) executor.Attempt {
	return executor.Attempt{ID: "run-1/" + task + "/c1", Ending: executor.Ending{Grace: 10 * time.Second}}
}

func TestStepsInOrderAndTheLastRepeats(t *testing.T) {
	e := fake.New("shell", map[string][]fake.Step{"flaky": {fake.Exit(1), fake.Exit(2), fake.Exit(0)}})
	for i, want := range []int{1, 2, 0, 0} {
		if r, err := e.Run(t.Context(), attempt("flaky"), func() {}); err != nil || r.ExitCode != want {
			t.Errorf("attempt %d: result %+v, error %v, want exit code %d", i, r, err, want)
		}
	}
	if r, err := e.Run(t.Context(), attempt("other"), func() {}); err != nil || r.ExitCode != 0 {
		t.Errorf("a task without script: result %+v, error %v", r, err)
	}
	if n := len(e.Calls()); n != 5 {
		t.Errorf("%d calls, want 5", n)
	}
}

func TestStepPrintsAndWritesFiles(t *testing.T) {
	dir := t.TempDir()
	e := fake.New("shell", map[string][]fake.Step{"a": {{Stdout: "out", Stderr: "err", Output: "{}", ContextUpdate: "k=v"}}})
	var out, errs strings.Builder
	a := executor.Attempt{Streams: executor.Streams{Stdout: &out, Stderr: &errs}, Env: map[string]string{
		"SWITCHYARD_TASK": "a", "SWITCHYARD_OUTPUT": filepath.Join(dir, "o"), "SWITCHYARD_CONTEXT_UPDATE": filepath.Join(dir, "c"),
	}}
	if _, err := e.Run(t.Context(), a, func() {}); err != nil {
		t.Fatal(err)
	}
	output, _ := os.ReadFile(filepath.Join(dir, "o"))
	update, _ := os.ReadFile(filepath.Join(dir, "c"))
	if out.String() != "out" || errs.String() != "err" || string(output) != "{}" || string(update) != "k=v" {
		t.Errorf("printed %q and %q, wrote %q and %q", out.String(), errs.String(), output, update)
	}
}

func TestStepReturnsItsErrors(t *testing.T) {
	broken := errors.New("the node is broken")
	e := fake.New("shell", map[string][]fake.Step{
		"start": {{StartErr: &executor.StartError{ExitCode: 127, Err: errors.New("not found")}}},
		"node":  {{Err: broken}},
	})
	spawns := 0
	if _, err := e.Run(t.Context(), attempt("start"), func() { spawns++ }); executor.AsStartError(err) == nil || spawns != 0 {
		t.Errorf("error %v, spawned %d times, want a StartError and never", err, spawns)
	}
	if _, err := e.Run(t.Context(), attempt("node"), func() { spawns++ }); !errors.Is(err, broken) || spawns != 1 {
		t.Errorf("error %v, spawned %d times, want the node's and once", err, spawns)
	}
}

func TestBlockedStepWaitsForRelease(t *testing.T) {
	e := fake.New("shell", map[string][]fake.Step{"a": {{Block: true, Result: executor.Result{ExitCode: 5}}}})
	var wait sync.WaitGroup
	wait.Go(func() {
		if r, err := e.Run(t.Context(), attempt("a"), func() {}); err != nil || r.ExitCode != 5 || r.Stopped {
			t.Errorf("result %+v, error %v", r, err)
		}
	})
	if err := e.AwaitRunning(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	e.Release("a")
	e.Release("a")
	wait.Wait()
}

// AwaitRunning ignores a step that is over at once.
func TestAwaitRunningIgnoresStepsThatDoNotLast(t *testing.T) {
	e := fake.New("shell", map[string][]fake.Step{"a": {{Stdout: "x"}, {Stdout: "x", Block: true}}})
	for i, want := range []bool{false, true} {
		var found bool
		a := attempt("a")
		a.Stdout = writer(func() {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			found = e.AwaitRunning(ctx, "a") == nil
		})
		e.Release("a")
		if _, err := e.Run(t.Context(), a, func() {}); err != nil {
			t.Fatal(err)
		}
		if found != want {
			t.Errorf("step %d: found running %v, want %v", i, found, want)
		}
	}
}

// writer is a function that is called for each write.
type writer func()

func (w writer) Write(p []byte) (int, error) {
	w()
	return len(p), nil
}

func TestStopEndsAStep(t *testing.T) {
	for name, test := range map[string]struct {
		step fake.Step
		code int
		took time.Duration
	}{
		"while it runs":   {fake.Step{Duration: time.Hour}, 143, time.Minute},
		"while it blocks": {fake.Step{Block: true}, 143, time.Minute},
		"deaf to SIGTERM": {fake.Step{Block: true, IgnoreTerm: true}, 137, time.Minute + 10*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := fake.New("shell", map[string][]fake.Step{"a": {test.step}})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				start := time.Now()
				r, err := e.Run(ctx, attempt("a"), func() {})
				if err != nil || !r.Stopped || r.ExitCode != test.code {
					t.Errorf("result %+v, error %v, want a stopped one with %d", r, err, test.code)
				}
				if took := time.Since(start); took != test.took {
					t.Errorf("took %v, want %v", took, test.took)
				}
			})
		})
	}
}
