//go:build engines

package container

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docker/docker/client"

	"switchyard/activities/executor"
	"switchyard/activities/executor/container/enginetest"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

// lateBody is a response body that delays its reads.
type lateBody struct {
	io.ReadCloser
	by time.Duration
}

func (b lateBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		time.Sleep(b.by)
	}
	return n, err
}

// writes is a function that is called for each write.
type writes func()

func (do writes) Write(p []byte) (int, error) {
	do()
	return len(p), nil
}

// TestStoppedProgramKeepsItsCodeWhenEngineIsSlow checks that a stopped program which ends by itself
// keeps its exit code, although the engine reports it late.
func TestStoppedProgramKeepsItsCodeWhenEngineIsSlow(t *testing.T) {
	t.Parallel()
	docker := enginetest.Engine(t)
	e := newFor(t, Options{Host: changedEngine(t, docker, func(r *http.Response) error {
		if strings.HasSuffix(r.Request.URL.Path, "/wait") {
			r.Body = lateBody{r.Body, 2 * endPatience}
		}
		return nil
	})})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result, err := e.Run(ctx, lateAttempt(t, "exit 7", cancel), func() {})
	if err != nil || !result.Stopped || result.ExitCode != 7 || result.Signal != "" {
		t.Errorf("%+v, %v; want a stopped one with the program's own exit code 7", result, err)
	}
}

// TestKilledContainerIsAwaitedIfOnlyTheEngineCanReportItsEnd checks that an engine which answers gets time to report the end of a
// killed container whose process is not visible on this machine.
func TestKilledContainerIsAwaitedIfOnlyTheEngineCanReportItsEnd(t *testing.T) {
	t.Parallel()
	docker := enginetest.Engine(t)
	e := newFor(t, Options{Host: changedEngine(t, docker, func(r *http.Response) error {
		switch path := r.Request.URL.Path; {
		case strings.HasSuffix(path, "/wait"):
			r.Body = lateBody{r.Body, 2 * endPatience}
		case r.StatusCode == http.StatusOK && strings.Contains(path, "/containers/") && strings.HasSuffix(path, "/json"):
			return changeJSON(r, func(c map[string]any) {
				if state, ok := c["State"].(map[string]any); ok {
					state["Pid"] = 0
				}
			})
		}
		return nil
	})})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a := lateAttempt(t, "", cancel)
	a.Grace = 100 * time.Millisecond
	result, err := e.Run(ctx, a, func() {})
	if err != nil || !result.Stopped || result.Signal != "SIGKILL" {
		t.Errorf("%+v, %v; want one stopped by SIGKILL", result, err)
	}
}

// TestStopSignalThatAStartingMachineMissesIsRepeated stops a machine before its process is looked up, and loses the first signal.
func TestStopSignalThatAStartingMachineMissesIsRepeated(t *testing.T) {
	t.Parallel()
	docker, busybox := enginetest.Engine(t), enginetest.Image(t)
	var started atomic.Bool
	missed := make(chan struct{})
	miss := sync.OnceFunc(func() { close(missed) })
	e := newFor(t, Options{Host: proxyOf(t, docker, nil, func(r *http.Request) {
		switch path := r.URL.Path; {
		case strings.HasSuffix(path, "/start"):
			started.Store(true)
		case strings.HasSuffix(path, "/kill"):
			select {
			case <-missed:
			default:
				r.URL.RawQuery = "signal=SIGCONT" // has no effect
				miss()
			}
		case started.Load() && strings.Contains(path, "/containers/") && strings.HasSuffix(path, "/json"):
			<-missed
		}
	})}).ForKind(Kind{Type: v1.TypeVPS, Lasts: true, Plan: func(executor.Attempt) (Plan, error) {
		return Plan{Spec: &v1.ContainerSpec{Image: busybox, Network: "none"}, Waits: true}, nil
	}})
	t.Cleanup(miss)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	name := "run-" + strings.TrimPrefix(digestOf(randomTar(t)), "sha256:")[:12]
	result, err := e.Run(ctx, executor.Attempt{
		ID: name + "/box/c1", Identity: executor.Identity{Run: name, Task: "box", Node: "n", Index: -1, Claim: 1}, Ending: executor.Ending{Grace: time.Minute},
	}, cancel)
	if err != nil || !result.Stopped || result.Signal != "SIGTERM" {
		t.Errorf("%+v, %v; want one stopped by SIGTERM", result, err)
	}
}

// TestRunWaitsForFirstAnswer checks that Run waits for the first answer of the engine, and that the
// executor is unavailable before.
func TestRunWaitsForFirstAnswer(t *testing.T) {
	t.Parallel()
	docker := enginetest.Engine(t)
	answer := make(chan struct{})
	e := newFor(t, Options{Host: changedEngine(t, docker, func(r *http.Response) error {
		if strings.HasSuffix(r.Request.URL.Path, "/_ping") {
			<-answer
		}
		return nil
	})})
	if err := e.Available(); err == nil {
		t.Error("an engine that has not answered is available")
	}
	time.AfterFunc(2*firstPing, func() { close(answer) })
	result, out, err := runSpec(t, e, map[string]any{"command": "echo ran"})
	if err != nil || out != "ran\n" {
		t.Errorf("%+v, %q, %v", result, out, err)
	}
}

// lateEngine returns the address of a proxy for the machine's engine that delays calls whose path ends with a suffix. The engine
// carries them out whether or not their callers still wait. arrived is called with each of these calls before the delay. settle
// waits until the calls that have arrived have taken effect.
func lateEngine(t *testing.T, docker *client.Client, suffix string, arrived func(*http.Request)) (host string, settle func()) {
	t.Helper()
	// The proxy cancels a request when its caller leaves, unless the context of the request can end otherwise.
	lasting, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	var late sync.WaitGroup
	answered := func(r *http.Response) error {
		if strings.HasSuffix(r.Request.URL.Path, suffix) {
			late.Done()
		}
		return nil
	}
	return proxyOf(t, docker, answered, func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, suffix) {
			late.Add(1)
			*r = *r.WithContext(lasting)
			arrived(r)
			time.Sleep(200 * time.Millisecond)
		}
	}), late.Wait
}

// lateAttempt returns an attempt that runs until SIGTERM, at which its program executes onTerm, or ignores the signal if that is "".
// printed is called when the program runs.
func lateAttempt(t *testing.T, onTerm string, printed func()) executor.Attempt {
	t.Helper()
	a, _, _ := enginetest.Attempt(t, "late", map[string]any{"command": "trap '" + onTerm + "' TERM; echo ready; while :; do sleep 0.05; done"})
	a.Stdout = writes(printed)
	return a
}

// beginLasting starts a container that runs until the end of the test, and returns the id of its attempt.
func beginLasting(t *testing.T, e *Executor) (id string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	a, out, _ := enginetest.Attempt(t, "late", map[string]any{"command": "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done"})
	ended := enginetest.Begin(t, ctx, e, a)
	t.Cleanup(func() {
		cancel()
		if r := enginetest.End(t, ended); r.Err != nil {
			t.Error(r.Err)
		}
	})
	out.Await(t, "ready")
	return a.ID
}

// isPaused reports whether the container of an attempt is paused.
func isPaused(t *testing.T, docker *client.Client, e *Executor, id string) bool {
	t.Helper()
	c, err := docker.ContainerInspect(t.Context(), e.find(id).id)
	if err != nil {
		t.Fatal(err)
	}
	return c.State.Paused
}

func TestCaptureCancelledBeforeTheEnginePausesLeavesTheContainerRunning(t *testing.T) {
	t.Parallel()
	docker := enginetest.Engine(t)
	capturing, giveUp := context.WithCancel(t.Context())
	host, settle := lateEngine(t, docker, "/pause", func(*http.Request) { giveUp() })
	e := newFor(t, Options{Host: host})
	id := beginLasting(t, e)
	if _, err := e.Capture(capturing, id, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("the capture: %v", err)
	}
	settle()
	if isPaused(t, docker, e, id) {
		t.Error("the container is paused")
	}
}

// A call that was cancelled before the engine carried it out does not undo a later one.
func TestSteeringThatIsCancelledDoesNotUndoALaterCall(t *testing.T) {
	t.Parallel()
	docker := enginetest.Engine(t)
	for path, pauses := range map[string]bool{"/pause": true, "/unpause": false} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			cancelled, giveUp := context.WithCancel(t.Context())
			host, settle := lateEngine(t, docker, path, func(*http.Request) { giveUp() })
			e := newFor(t, Options{Host: host})
			id := beginLasting(t, e)
			first, last := e.Pause, e.Resume
			if !pauses {
				first, last = e.Resume, e.Pause
				if err := e.Pause(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
			err := first(cancelled, id)
			// The engine learns of the change from the runtime too, and would undo the next change in its books if that came at once.
			time.Sleep(100 * time.Millisecond)
			if err := errors.Join(err, last(t.Context(), id)); err != nil {
				t.Error(err)
			}
			settle()
			if isPaused(t, docker, e, id) == pauses {
				t.Error("the later call has been undone")
			}
		})
	}
}

func TestCommandCancelledBeforeTheEngineStartsItEnds(t *testing.T) {
	t.Parallel()
	docker := enginetest.Engine(t)
	running, giveUp := context.WithCancel(t.Context())
	started := make(chan string, 1)
	host, _ := lateEngine(t, docker, "/start", func(r *http.Request) {
		if _, after, isExec := strings.Cut(r.URL.Path, "/exec/"); isExec {
			started <- strings.TrimSuffix(after, "/start")
			giveUp()
		}
	})
	e := newFor(t, Options{Host: host})
	in, err := e.Enter(t.Context(), beginLasting(t, e))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = in.Exec(running, executor.Command{Args: []string{"sleep", "100000"}}) // the status and the error depend on the moment
	exec := <-started
	testneeds.Await(t, "it comes", func() bool {
		seen, err := docker.ContainerExecInspect(t.Context(), exec)
		return err == nil && seen.Pid > 0 && !seen.Running
	})
}

// TestRemovalOfAnOlderVersionEndsBeforeAnAttemptUsesIt cancels an attempt whose removal of an older version reaches the engine late.
func TestRemovalOfAnOlderVersionEndsBeforeAnAttemptUsesIt(t *testing.T) {
	t.Parallel()
	docker := enginetest.Engine(t)
	s, name := newShelf(), environmentName(t)
	archive, first := saved(t)
	older := environmentTag(s.put(name, archive, first))
	starting, giveUp := context.WithCancel(t.Context())
	host, settle := lateEngine(t, docker, older, func(*http.Request) { giveUp() })
	e := newFor(t, Options{Environments: s, Host: host})
	e.ensure(t, name)
	archive, second := saved(t)
	s.put(name, archive, second)
	_, release, err := e.images.ensureEnvironment(starting, &v1.ContainerSpec{Environment: name}, nil)
	if err != nil {
		t.Fatal(err)
	}
	release()
	defer e.images.inUse.keepImage(older)()
	_, before := e.images.inspectImage(t.Context(), older)
	settle()
	if _, after := e.images.inspectImage(t.Context(), older); (before == nil) != (after == nil) {
		t.Errorf("the image in use: %v, and then %v", before, after)
	}
}
