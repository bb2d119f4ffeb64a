package workers_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"switchyard/activities/orchestrator"
	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/names"
)

// holders are workflows that acquire a lock, hold it until they get a signal, and release it, as runs do.
type holders struct {
	*workertest.Cluster
	t     *testing.T
	queue string

	mu    sync.Mutex
	heard []string
	holds map[string]bool
	most  int
}

func newHolders(t *testing.T, y *workertest.Cluster) *holders {
	h := &holders{Cluster: y, t: t, queue: names.NewRunID("holders"), holds: map[string]bool{}}
	w := worker.New(y.Conn.Client, h.queue, worker.Options{})
	w.RegisterWorkflowWithOptions(h.hold, workflow.RegisterOptions{Name: "holder"})
	w.RegisterActivity(&orchestrator.Locks{Client: y.Conn})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return h
}

// note records an event of a holder. It uses a local activity because workflow code may run again after a lost workflow
// task or in a replay.
func (h *holders) note(ctx workflow.Context, word, id string, change int) error {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: 10 * time.Second})
	return workflow.ExecuteLocalActivity(ctx, h.keep, word, id, change).Get(ctx, nil)
}

// keep records each event of a holder once, however often it is reported.
func (h *holders) keep(_ context.Context, word, id string, change int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if slices.Contains(h.heard, id+" "+word) {
		return nil
	}
	h.heard = append(h.heard, id+" "+word)
	if change > 0 {
		h.holds[id] = true
	} else if change < 0 {
		delete(h.holds, id)
	}
	h.most = max(h.most, len(h.holds))
	return nil
}

func (h *holders) hold(ctx workflow.Context, lock string, ask *historyv1.AcquireRequest, keep time.Duration) error {
	info := workflow.GetInfo(ctx)
	id := info.WorkflowExecution.ID
	local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: 10 * time.Second})
	send := func(r *historyv1.LockRequest) error {
		r.Lock = lock
		return workflow.ExecuteLocalActivity(local, (*orchestrator.Locks).Ask, &historyv1.LockRequests{Requests: []*historyv1.LockRequest{r}}).Get(ctx, nil)
	}
	ask.Holder, ask.Execution = id, info.FirstRunID
	if err := send(&historyv1.LockRequest{Acquire: ask}); err != nil {
		return err
	}
	granted := workflow.GetSignalChannel(ctx, names.GrantedSignal)
	for {
		var g historyv1.Granted
		granted.Receive(ctx, &g)
		if g.GetLock() != lock || g.GetClaim() != ask.GetClaim() {
			return fmt.Errorf("told %v", &g)
		}
		if g.GetRefused() {
			if err := h.note(ctx, "refused", id, 0); err != nil {
				return err
			}
			return send(&historyv1.LockRequest{Free: &historyv1.ReleaseRequest{Holder: id, Claim: ask.GetClaim()}})
		}
		if len(g.GetHolders()) == 0 {
			break
		}
		if err := h.note(ctx, "waits for "+g.GetHolders()[0], id, 0); err != nil {
			return err
		}
	}
	if err := h.note(ctx, "granted", id, 1); err != nil {
		return err
	}
	workflow.NewSelector(ctx).
		AddReceive(workflow.GetSignalChannel(ctx, "go on"), func(ch workflow.ReceiveChannel, _ bool) { ch.Receive(ctx, nil) }).
		AddReceive(granted, func(ch workflow.ReceiveChannel, _ bool) { ch.Receive(ctx, nil) }). // the claim was replaced
		AddFuture(workflow.NewTimer(ctx, keep), func(workflow.Future) {}).
		Select(ctx)
	if err := h.note(ctx, "done", id, -1); err != nil {
		return err
	}
	return send(&historyv1.LockRequest{Free: &historyv1.ReleaseRequest{Holder: id, Claim: ask.GetClaim()}})
}

// start starts a holder that holds the lock for the given time.
func (h *holders) start(id, lock string, ask *historyv1.AcquireRequest, keep time.Duration) {
	h.t.Helper()
	ask.Claim = "run"
	_, err := h.Conn.ExecuteWorkflow(h.t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: h.queue}, "holder", lock, ask, keep)
	if err != nil {
		h.t.Fatal(err)
	}
}

// hears waits until a holder has recorded the given events.
func (h *holders) hears(words ...string) {
	h.t.Helper()
	for _, word := range words {
		workertest.Eventually(h.t, word, func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			return slices.Contains(h.heard, word)
		})
	}
}

func (h *holders) goOn(id string) {
	h.t.Helper()
	if err := h.Conn.SignalWorkflow(h.t.Context(), id, "", "go on", nil); err != nil {
		h.t.Fatal(err)
	}
}

// order returns the holders in the order in which they were granted the lock.
func (h *holders) order() (ids []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, word := range h.heard {
		var id, what string
		if _, err := fmt.Sscan(word, &id, &what); err == nil && what == "granted" {
			ids = append(ids, id)
		}
	}
	return ids
}

// TestLockLimits checks that a lock never has more holders than allowed, and that every holder gets it, whatever
// happens to its history.
func TestLockLimits(t *testing.T) { lockLimits(t, 10) }

func TestLongLockLimits(t *testing.T) {
	testneeds.Long(t)
	lockLimits(t, 50)
}

func lockLimits(t *testing.T, n int) {
	t.Parallel()
	y := workertest.Shared(t)
	for _, limit := range []int32{1, 3} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			h := newHolders(t, y)
			lock := fmt.Sprintf("task:limit-%d", limit)
			for i := range n {
				h.start(fmt.Sprintf("%s-%d", lock, i), lock, &historyv1.AcquireRequest{Limit: limit}, 5*time.Millisecond)
			}
			workertest.Eventually(t, "all have had it", func() bool {
				h.mu.Lock()
				defer h.mu.Unlock()
				done := 0
				for _, word := range h.heard {
					if word[len(word)-4:] == "done" {
						done++
					}
				}
				return done == n
			})
			if ids := h.order(); len(ids) != n || h.most > int(limit) {
				t.Errorf("%d were granted it, at most %d at once", len(ids), h.most)
			}
			h.AwaitLockEnd(t, lock)
		})
	}
}

func TestLockOrder(t *testing.T) {
	t.Parallel()
	y := workertest.Shared(t)
	h := newHolders(t, y)
	const lock = "task:order"
	h.start("o-first", lock, &historyv1.AcquireRequest{}, time.Hour)
	h.hears("o-first granted")
	for id, priority := range map[string]int32{"o-low": 0, "o-high": 9} {
		h.start(id, lock, &historyv1.AcquireRequest{Priority: priority}, 0)
		h.hears(id + " waits for o-first")
	}
	h.start("o-middle", lock, &historyv1.AcquireRequest{Priority: 5}, 0)
	h.hears("o-middle waits for o-first")
	h.goOn("o-first")
	h.hears("o-low done")
	if got := h.order(); !slices.Equal(got, []string{"o-first", "o-high", "o-middle", "o-low"}) {
		t.Errorf("order %v", got)
	}
}

// TestLockFindsOutWhoIsGone checks that a lock frees the place of a holder that ended without releasing it, even if
// another generation of the holder exists.
func TestLockFindsOutWhoIsGone(t *testing.T) {
	t.Parallel()
	y := workertest.Shared(t)
	h := newHolders(t, y)
	const lock = "task:gone"
	h.start("g-dead", lock, &historyv1.AcquireRequest{}, time.Hour)
	h.hears("g-dead granted")
	h.start("g-next", lock, &historyv1.AcquireRequest{}, time.Hour)
	h.hears("g-next waits for g-dead")
	if err := y.Conn.TerminateWorkflow(t.Context(), "g-dead", "", "test"); err != nil {
		t.Fatal(err)
	}
	h.start("g-dead", "task:other", &historyv1.AcquireRequest{}, time.Hour)
	h.hears("g-next granted")

	// A waiting holder that has ended is skipped.
	h.start("g-waits", lock, &historyv1.AcquireRequest{}, time.Hour)
	h.hears("g-waits waits for g-next")
	h.start("g-last", lock, &historyv1.AcquireRequest{}, time.Hour)
	h.hears("g-last waits for g-next")
	if err := y.Conn.TerminateWorkflow(t.Context(), "g-waits", "", "test"); err != nil {
		t.Fatal(err)
	}
	h.goOn("g-next")
	h.hears("g-last granted")
	for _, id := range []string{"g-last", "g-dead"} {
		h.goOn(id)
	}
	h.AwaitLockEnd(t, lock)
}

func TestLockStrategies(t *testing.T) {
	t.Parallel()
	y := workertest.Shared(t)
	h := newHolders(t, y)
	const lock = "run:strategies"
	h.start("s-1", lock, &historyv1.AcquireRequest{}, time.Hour)
	h.hears("s-1 granted")
	h.start("s-skip", lock, &historyv1.AcquireRequest{Strategy: "skip"}, time.Hour)
	h.start("s-fail", lock, &historyv1.AcquireRequest{Strategy: "fail"}, time.Hour)
	h.hears("s-skip refused", "s-fail refused")
	h.start("s-2", lock, &historyv1.AcquireRequest{Strategy: "replace"}, time.Hour)
	h.hears("s-1 done", "s-2 granted")
	h.goOn("s-2")
	h.AwaitLockEnd(t, lock)
}

// TestLockOutlivesItsProcess stops the control process while a lock is held and waited for.
func TestLockOutlivesItsProcess(t *testing.T) {
	t.Parallel()
	y := workertest.Shared(t)
	h := newHolders(t, y)
	const lock = "task:survives"
	h.start("p-1", lock, &historyv1.AcquireRequest{}, time.Hour)
	h.hears("p-1 granted")
	h.start("p-2", lock, &historyv1.AcquireRequest{}, time.Hour)
	h.hears("p-2 waits for p-1")
	y.Control.Stop()
	h.goOn("p-1") // signalled while no process carries the lock
	control, err := workers.StartControl(t.Context(), y.Config)
	if err != nil {
		t.Fatal(err)
	}
	y.Control = control
	h.hears("p-2 granted")
	if h.most != 1 {
		t.Errorf("%d held it at once", h.most)
	}
	h.goOn("p-2")
	h.AwaitLockEnd(t, lock)
}
