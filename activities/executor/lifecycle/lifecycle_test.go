package lifecycle

import (
	"context"
	"errors"
	"sync"
	"testing"

	"switchyard/activities/executor"
)

// Each step of each phase leads to the next phase, or is refused.
func TestStepsOfPhases(t *testing.T) {
	t.Parallel()
	gone := executor.ErrNotRunning
	type step struct {
		next Phase
		err  error
	}
	steps := []func(State) (State, error){
		func(s State) (State, error) { return s.steer(true) },
		State.capture,
		State.restart,
		func(s State) (State, error) { return s.captured(false), nil },
		func(s State) (State, error) { return s.restarted(false), nil },
		func(s State) (State, error) { return s.stop(Stopping), nil },
		func(s State) (State, error) { return s.stop(Leaving), nil },
		func(s State) (State, error) { return s.end(), nil },
	}
	for from, want := range map[Phase][]step{
		// steer, capture, restart, captured, restarted, stop, leave, end
		Running:    {{Running, nil}, {Capturing, nil}, {Restarting, nil}, {Running, nil}, {Running, nil}, {Stopping, nil}, {Leaving, nil}, {Ended, nil}},
		Capturing:  {{Capturing, errCapturing}, {Capturing, errBusy}, {Capturing, errCapturing}, {Running, nil}, {Capturing, nil}, {Stopping, nil}, {Leaving, nil}, {Ended, nil}},
		Restarting: {{Restarting, nil}, {Restarting, errBusy}, {Restarting, nil}, {Restarting, nil}, {Running, nil}, {Stopping, nil}, {Leaving, nil}, {Ended, nil}},
		Stopping:   {{Stopping, gone}, {Stopping, gone}, {Stopping, gone}, {Stopping, nil}, {Stopping, nil}, {Stopping, nil}, {Leaving, nil}, {Stopped, nil}},
		Leaving:    {{Leaving, gone}, {Leaving, gone}, {Leaving, gone}, {Leaving, nil}, {Leaving, nil}, {Stopping, nil}, {Leaving, nil}, {Left, nil}},
		Ended:      {{Ended, gone}, {Ended, gone}, {Ended, gone}, {Ended, nil}, {Ended, nil}, {Ended, nil}, {Ended, nil}, {Ended, nil}},
		Stopped:    {{Stopped, gone}, {Stopped, gone}, {Stopped, gone}, {Stopped, nil}, {Stopped, nil}, {Stopped, nil}, {Stopped, nil}, {Stopped, nil}},
		Left:       {{Left, gone}, {Left, gone}, {Left, gone}, {Left, nil}, {Left, nil}, {Left, nil}, {Left, nil}, {Left, nil}},
	} {
		for i, do := range steps {
			if got, err := do(State{Phase: from}); got.Phase != want[i].next || !errors.Is(err, want[i].err) {
				t.Errorf("step %d of phase %d leads to phase %d, error %v; want phase %d, error %v", i, from, got.Phase, err, want[i].next, want[i].err)
			}
		}
	}
}

// An end with which a restart begins is not the end of the attempt.
func TestAttemptEndsOnce(t *testing.T) {
	t.Parallel()
	l := &Lifecycle{restarts: 1}
	if _, ended := l.End(0, false); ended || l.State().IsEnding() {
		t.Error("the end of a restart ended the attempt")
	}
	if err := l.endRestart(errors.New("no space")); err == nil {
		t.Error("the error of a restart is lost")
	}
	if err, ended := l.End(1, false); !ended || err == nil || !l.State().IsOver() {
		t.Errorf("got error %v, %v; want an end because of the failed restart", err, ended)
	}
	if _, ok := l.Leave(); ok || l.State().IsLeft() {
		t.Error("an attempt that is over was left")
	}
}

func TestRestartInProgressIsShared(t *testing.T) {
	t.Parallel()
	l, starts, release := &Lifecycle{}, 0, make(chan struct{})
	var calls sync.WaitGroup
	restart := func(refusal error) (*Restart, error) {
		return l.BeginRestart(t.Context(), &calls, refusal, func(context.Context) error {
			starts++
			<-release
			return nil
		})
	}
	first, err := restart(nil)
	second, again := restart(errors.New("refused"))
	close(release)
	if err != nil || again != nil || first != second {
		t.Errorf("restarts %p and %p, errors %v and %v", first, second, err, again)
	}
	if begun := l.AwaitRestart(t.Context()); begun != 1 || first.Await(t.Context()) != nil {
		t.Errorf("%d restarts have begun, error %v", begun, first.err)
	}
	third, err := restart(nil)
	if calls.Wait(); err != nil || third == first || starts != 2 {
		t.Errorf("a restart that has ended is shared, error %v", err)
	}
}
