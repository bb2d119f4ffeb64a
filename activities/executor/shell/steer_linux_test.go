package shell

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/activities/executor"
)

// ticking counts by appending bytes to files, in two processes: one that forks all the
// time, and one in a session of its own.
const ticking = `trap 'printf bye; exit 3' TERM
setsid sh -c 'while :; do printf x >>b; done' &
while :; do (printf x >>a); done`

// steerable is an attempt that runs ticking, with its outcome.
type steerable struct {
	dir    string
	id     string
	cancel context.CancelFunc
	out    strings.Builder
	mu     sync.Mutex
	result executor.Result
	err    error
	done   chan struct{}
}

func (s *steerable) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

func startTicking(t *testing.T, e *Executor) *steerable {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &steerable{dir: t.TempDir(), id: idPrefix + t.Name() + "/task/c1", cancel: cancel, done: make(chan struct{})}
	a := executor.Attempt{
		ID: s.id, Spec: spec(t, map[string]any{"command": ticking}), BaseDir: s.dir, Stdout: s, Grace: time.Minute,
	}
	go func() {
		defer close(s.done)
		s.result, s.err = e.Run(ctx, a, func() {})
	}()
	t.Cleanup(func() { cancel(); <-s.done })
	// The program may run before the executor can suspend it.
	eventually(t, "it can be steered", func() bool { return !errors.Is(e.Resume(t.Context(), s.id), executor.ErrNotRunning) })
	s.awaitProgress(t)
	return s
}

func (s *steerable) size(t *testing.T, name string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(s.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// awaitProgress waits until both loops have made progress.
func (s *steerable) awaitProgress(t *testing.T) {
	t.Helper()
	for _, name := range []string{"a", "b"} {
		before := s.size(t, name)
		for deadline := time.Now().Add(2 * time.Minute); s.size(t, name) <= before; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s does not grow", name)
			}
		}
	}
}

// wantNoProgress fails the test if either loop makes progress for a while.
func (s *steerable) wantNoProgress(t *testing.T) {
	t.Helper()
	a, b := s.size(t, "a"), s.size(t, "b")
	time.Sleep(100 * time.Millisecond)
	if s.size(t, "a") != a || s.size(t, "b") != b {
		t.Error("it continues although it is suspended")
	}
}

func TestPauseStopsEveryProcess(t *testing.T) {
	t.Parallel()
	pauseStopsEveryProcess(t, portable)
}

func pauseStopsEveryProcess(t *testing.T, m Mechanism) {
	e := newExecutor(t, Options{Mechanism: m})
	if err := e.Pause(t.Context(), "nobody/task/c1"); !errors.Is(err, executor.ErrNotRunning) {
		t.Errorf("pause what does not run: %v", err)
	}
	s := startTicking(t, e)
	for range 5 {
		for range 2 {
			if err := e.Pause(t.Context(), s.id); err != nil {
				t.Fatal(err)
			}
		}
		s.wantNoProgress(t)
		for range 2 {
			if err := e.Resume(t.Context(), s.id); err != nil {
				t.Fatal(err)
			}
		}
		s.awaitProgress(t)
	}
	// An attempt that is stopped while suspended receives the signal.
	if err := e.Pause(t.Context(), s.id); err != nil {
		t.Fatal(err)
	}
	s.cancel()
	<-s.done
	if s.err != nil || !s.result.Stopped || s.result.ExitCode != 3 || s.out.String() != "bye" {
		t.Errorf("ended with %+v, %v, and has said %q", s.result, s.err, s.out.String())
	}
	if err := e.Resume(t.Context(), s.id); !errors.Is(err, executor.ErrNotRunning) {
		t.Errorf("resume what has ended: %v", err)
	}
}

// The suspension of one attempt does not affect the next one in the same process tree.
func TestPauseDoesNotAffectTheNextAttemptOfABatch(t *testing.T) {
	t.Parallel()
	pauseSparesTheNextOfABatch(t, portable)
}

func pauseSparesTheNextOfABatch(t *testing.T, m Mechanism) {
	e := newExecutor(t, Options{Mechanism: m})
	row, err := e.Batch(idPrefix+"/task[0]/c1", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer row.Close()
	for _, id := range []string{idPrefix + "/task[0]/c1", idPrefix + "/task[1]/c1"} {
		ctx, cancel := context.WithCancel(t.Context())
		a := executor.Attempt{ID: id, Spec: spec(t, map[string]any{"command": "sleep 1000"}), BaseDir: t.TempDir(), Grace: time.Minute}
		var paused sync.WaitGroup
		r, err := row.Run(ctx, a, func() {
			paused.Go(func() {
				defer cancel()
				for errors.Is(e.Pause(t.Context(), id), executor.ErrNotRunning) {
					time.Sleep(time.Millisecond)
				}
			})
		})
		paused.Wait()
		if err != nil || r.Signal != "SIGTERM" {
			t.Errorf("%s has ended with %+v, %v", id, r, err)
		}
	}
}
