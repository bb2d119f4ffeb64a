package executortest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
)

// Harness adapts the suite to one type of executor.
type Harness struct {
	// New creates an executor and registers its clean-up with t.
	New func(t *testing.T) executor.Executor
	// Spec returns a program as a spec, or nil if the task type cannot express it; the test is then skipped.
	Spec func(p Program) *structpb.Struct
	// BadSpecs maps a description of a fault to a spec that must yield a StartError.
	BadSpecs map[string]*structpb.Struct
	// Left lists what is left of an attempt on the machine.
	Left func(t *testing.T, id string) []string
	// FloodBytes is how much a program prints to check that memory is bounded.
	FloodBytes int64
	// Many is how many attempts run at once to check concurrency.
	Many int
	// Repeats is how often a test repeats an attempt to provoke a race.
	Repeats int
	// DefaultDir is the working directory of a program whose spec names none, or "" for the attempt's BaseDir.
	DefaultDir string
	// OnlyCodes reports that an executor cannot distinguish a program that exits with 128 plus a signal number from
	// one that the signal ended.
	OnlyCodes bool
	// Image reports that results name a container and its image.
	Image bool
	// Memory reports that the executor limits the memory of attempts.
	Memory bool
	// Stdin reports that attempts may have a standard input.
	Stdin bool
	// Abandon starts an attempt in a separate worker, and kills that worker once the attempt has printed ready. It
	// is nil if attempts do not outlive their worker.
	Abandon func(t *testing.T, a executor.Attempt, ready string)
}

const (
	// patience is how long an attempt that waits for nothing may take on a busy machine.
	patience = 5 * time.Minute
	// grace is the grace period of attempts that do not need it, however busy the machine is.
	grace = 2 * time.Minute
)

// Run runs the suite. Tests that measure this process or load the machine run first, one at a time. The others
// mostly wait, so they run in parallel. The test that calls Run must therefore not be parallel itself.
func Run(t *testing.T, h Harness) {
	t.Run("flood", h.flood)
	t.Run("many at once", h.many)
	atOnce(t, map[string]func(*testing.T){
		"streams":             h.streams,
		"standard input":      h.stdin,
		"exit code":           h.exitCode,
		"signal":              h.signal,
		"environment":         h.environment,
		"directory":           h.directory,
		"start errors":        h.startErrors,
		"spawned comes first": h.spawnedFirst,
		"stop":                h.stop,
		"lease":               h.lease,
		"nothing survives":    h.nothingSurvives,
		"output":              h.output,
		"batch":               h.batch,
		"memory":              h.memory,
		"steer":               h.steer,
		"survivors":           h.survivors,
	})
}

// atOnce runs tests in parallel.
func atOnce(t *testing.T, tests map[string]func(*testing.T)) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

var serial atomic.Int64

// attempt returns an attempt with an id that is unique in this process. It skips the test if the task type has no
// such program.
func (h Harness) attempt(t *testing.T, p Program) (executor.Attempt, *capture) {
	t.Helper()
	spec := h.Spec(p)
	if spec == nil {
		t.Skipf("this type has no program like %+v", p)
	}
	c := &capture{}
	run := fmt.Sprintf("suite-%d-%d", time.Now().UnixNano(), serial.Add(1))
	return executor.Attempt{
		ID:       run + "/task/c1",
		Identity: executor.Identity{Run: run, Task: "task", Node: "suite", Index: -1, Claim: 1},
		Spec:     spec,
		Env:      map[string]string{},
		Dirs:     executor.Dirs{Base: t.TempDir()},
		Streams:  executor.Streams{Stdout: &c.out, Stderr: &c.err},
		Ending:   executor.Ending{Grace: grace},
		Reports:  executor.Reports{Located: func(w *v1.Workload) { c.workload.Store(w) }},
	}, c
}

// capture holds what an attempt prints and counts its starts.
type capture struct {
	out, err buffer
	spawns   atomic.Int32
	workload atomic.Pointer[v1.Workload]
}

// buffer is a bytes.Buffer that a test can read during writes.
type buffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

func (c *capture) spawned() { c.spawns.Add(1) }

// finish runs an attempt to its end and fails the test on an error.
func (h Harness) finish(t *testing.T, ctx context.Context, e executor.Executor, a executor.Attempt, c *capture) executor.Result {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("the suite's patience"))
	defer cancel()
	r, err := e.Run(ctx, a, c.spawned)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	if context.Cause(ctx) != nil && context.Cause(ctx).Error() == "the suite's patience" {
		t.Fatalf("still running after %v; stdout %q, stderr %q", patience, c.out.String(), c.err.String())
	}
	if (r.Image != "") != h.Image {
		t.Errorf("the result names the image %q", r.Image)
	}
	if (r.Container != "") != h.Image {
		t.Errorf("the result names the container %q", r.Container)
	}
	if n := c.spawns.Load(); n != 1 {
		t.Errorf("spawned was called %d times, want once", n)
	}
	if w := c.workload.Load(); w.GetContainer() != r.Container || (w.GetPid() != 0) == h.Image || (w.GetImage() != "") != h.Image {
		t.Errorf("the attempt was said to run as %v", w)
	}
	h.nothingLeft(t, a.ID)
	return r
}

func (h Harness) nothingLeft(t *testing.T, id string) {
	t.Helper()
	if left := h.Left(t, id); len(left) > 0 {
		t.Errorf("left behind when Run has returned: %s", strings.Join(left, "; "))
	}
}

// cancelled runs an attempt and cancels it once it has printed ready. It returns the result and the time since the
// cancellation.
func (h Harness) cancelled(t *testing.T, e executor.Executor, a executor.Attempt, c *capture) (executor.Result, time.Duration) {
	t.Helper()
	return stopWhenReady(t, a, c, func(ctx context.Context, a executor.Attempt, _ func()) (executor.Result, error) {
		return h.finish(t, ctx, e, a, c), nil
	})
}

// stopWhenReady calls run with an attempt, and cancels it once it has printed ready. It returns the result and the time since
// the cancellation.
func stopWhenReady(t *testing.T, a executor.Attempt, c *capture, run func(context.Context, executor.Attempt, func()) (executor.Result, error)) (executor.Result, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var at atomic.Int64
	a.Stdout = &trigger{buffer: &c.out, on: "ready", do: sync.OnceFunc(func() {
		at.Store(time.Now().UnixNano())
		cancel()
	})}
	r, err := run(ctx, a, c.spawned)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	return r, time.Since(time.Unix(0, at.Load()))
}

// trigger is a buffer that calls do when it contains a text.
type trigger struct {
	*buffer
	on string
	do func()
}

func (w *trigger) Write(p []byte) (int, error) {
	n, err := w.buffer.Write(p)
	if strings.Contains(w.buffer.String(), w.on) {
		w.do()
	}
	return n, err
}
