package workers

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/executor/fake"
	"switchyard/activities/registry"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// link is a network between a node and the server that a test can cut. Data sent during a cut arrives when the link is
// mended, as on a line that loses packets.
type link struct {
	listener net.Listener
	server   string
	ends     sync.WaitGroup

	mu    sync.Mutex
	whole chan struct{} // closed unless the link is cut
	conns []net.Conn
}

func newLink(t *testing.T, server string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{listener: listener, server: server, whole: make(chan struct{})}
	close(l.whole)
	l.ends.Go(l.serve)
	t.Cleanup(func() {
		l.mend()
		listener.Close()
		l.mu.Lock()
		for _, c := range l.conns {
			c.Close()
		}
		l.mu.Unlock()
		l.ends.Wait()
	})
	return l
}

func (l *link) address() string { return l.listener.Addr().String() }

func (l *link) serve() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", l.server)
		if err != nil {
			near.Close()
			continue
		}
		l.mu.Lock()
		l.conns = append(l.conns, near, far)
		l.mu.Unlock()
		l.ends.Go(func() { l.carry(far, near) })
		l.ends.Go(func() { l.carry(near, far) })
	}
}

// carry copies incoming data while the link is whole.
func (l *link) carry(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		l.mu.Lock()
		whole := l.whole
		l.mu.Unlock()
		<-whole
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				from.Close()
			}
			return
		}
	}
}

func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.whole = make(chan struct{})
}

func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.whole:
	default:
		close(l.whole)
	}
}

// distant starts a node that reaches the server through a link.
func (c *workerSet) distant(short string, change ...func(*NodeConfig)) *link {
	c.t.Helper()
	l := newLink(c.t, c.server.Address())
	conn, err := Dial(c.t.Context(), DialOptions{Address: l.address(), Identity: short, Logger: c.logger})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(conn.Close)
	c.start(short, append(change, func(cfg *NodeConfig) { cfg.Client = conn })...)
	// The node's stop calls the server, so the link must be mended first.
	c.t.Cleanup(l.mend)
	return l
}

// heartbeat is the heartbeat time-out of the runs below. Their leases are lost after 4.8 s and have expired after 6.4
// s.
const heartbeat = 8 * time.Second

func (c *workerSet) cutInput() *v1.RunInput {
	c.t.Helper()
	in := c.input(`{name: cut, tasks: {a: {type: shell, spec: {command: x}, retry: {backoffMs: 1}}}}`)
	in.Options = &v1.RunOptions{HeartbeatTimeout: durationpb.New(heartbeat)}
	return in
}

// TestCutEndsBeforeLease checks that a node that is cut off for less than its leases continues its attempts.
func TestCutEndsBeforeLease(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"a": {{Block: true}}})
	l := c.distant("n")
	in := c.cutInput()
	in.Options.HeartbeatTimeout = durationpb.New(3 * heartbeat) // a busy machine also needs some of the lease
	h := c.submit(in)
	c.running("a")
	lease := c.fake.Calls()[0].Attempt.Lease
	before := lease.KillAt()
	l.cut()
	const short = 3 * heartbeat / 4
	time.Sleep(short)
	l.mend()
	eventually(t, "the lease is renewed", func() bool { return lease.KillAt() > before.Add(short) })
	c.fake.Release("a")
	run := h.wait()
	want(t, run, "completed", nil)
	if n := c.calls()["a"]; n != 1 || run.GetTasks()["a"].GetAttempt() != 0 {
		t.Errorf("it ran %d times: %v", n, run.GetTasks()["a"])
	}
}

// TestCutOutlastsLease checks that the attempts of a node that is cut off for long end before they start elsewhere.
func TestCutOutlastsLease(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"a": {{Block: true, IgnoreTerm: true}}})
	l := c.distant("n")
	h := c.submit(c.cutInput())
	c.running("a")
	// The server knows that the attempt runs.
	eventually(t, "the server knows that it runs", h.spawned)
	c.start("m")
	l.cut()
	both := false
	err := c.fake.Await(t.Context(), func(calls []fake.Call, running map[string]int) bool {
		both = both || running["a"] > 1 || len(calls) > 1 && !calls[0].Attempt.Lease.Over()
		return len(calls) > 1 && running["a"] == 1
	})
	if err != nil {
		t.Fatal(err)
	}
	if both {
		t.Error("the task ran on two nodes at once")
	}
	l.mend()
	c.fake.Release("a")
	run := h.wait()
	want(t, run, "completed", nil)
	if a := run.GetTasks()["a"]; a.GetNode() != c.name("m") || a.GetAttempt() != 1 || c.calls()["a"] != 2 {
		t.Errorf("it ran %d times: %v", c.calls()["a"], a)
	}
}

// TestReportLost checks that an attempt that completes on a cut-off node does not run again: its record is the result.
func TestReportLost(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"a": {{Block: true, Stdout: "once"}}})
	l := c.distant("n")
	h := c.submit(c.cutInput())
	c.running("a")
	eventually(t, "the server knows that it runs", h.spawned)
	c.start("m")
	l.cut()
	c.fake.Release("a")
	run := h.wait()
	want(t, run, "completed", nil)
	if a := run.GetTasks()["a"]; c.calls()["a"] != 1 || a.GetNode() != c.name("n") || a.GetResult().GetStdout() != "once" {
		t.Errorf("it ran %d times: %v", c.calls()["a"], a)
	}
}

// TestLastReportLost checks that the last attempt of a task that completes on a cut-off node is not lost, because the
// run looks for its record before the task ends.
func TestLastReportLost(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"a": {{Block: true, Stdout: "once"}}})
	l := c.distant("n")
	in := c.cutInput()
	in.Definition.Tasks["a"].Retry = &v1.RetryPolicy{MaxRetries: new(int32)}
	h := c.submit(in)
	c.running("a")
	eventually(t, "the server knows that it runs", h.spawned)
	l.cut()
	c.fake.Release("a")
	run := h.wait()
	want(t, run, "completed", map[string]string{"a": "completed"})
	if a := run.GetTasks()["a"]; c.calls()["a"] != 1 || a.GetResult().GetStdout() != "once" {
		t.Errorf("it ran %d times: %v", c.calls()["a"], a)
	}
}

// TestLastReportOfBatchLost checks that instances of a batch that complete on a cut-off node are not lost either.
func TestLastReportOfBatchLost(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"each": {{Stdout: "once"}, {Block: true, Stdout: "once"}, {Stdout: "once"}}})
	l := c.distant("n")
	in := c.input(`{name: cut, tasks: {each: {type: shell, spec: {command: x}, parallel: 3, batch: 3, retry: {maxRetries: 0}}}}`)
	in.Options = &v1.RunOptions{HeartbeatTimeout: durationpb.New(heartbeat)}
	h := c.submit(in)
	c.running("each")
	eventually(t, "the server knows that it runs", h.spawned)
	l.cut()
	c.fake.Release("each")
	run := h.wait()
	want(t, run, "completed", map[string]string{"each": "completed"})
	for _, i := range run.GetTasks()["each"].GetInstances() {
		if i.GetResult().GetStdout() != "once" {
			t.Errorf("instance %d: %v", i.GetIndex(), i)
		}
	}
	if n := c.calls()["each"]; n != 3 {
		t.Errorf("%d instances ran", n)
	}
}

// TestLostAttemptIsAwaitedWhileItsNodeOwesAnswer checks that a run waits until a live node has recorded the end of an
// attempt, however long that takes.
func TestLostAttemptIsAwaitedWhileItsNodeOwesAnswer(t *testing.T) {
	t.Parallel()
	y := shared(t)
	large := fmt.Sprintf(`{"fill": %q}`, strings.Repeat("x", 40_000)) // too large for the node to report without the record
	c := y.workers(t, script{"a": {{Block: true, Output: large}}})
	way := filepath.Join(t.TempDir(), "store")
	lead := func() {
		if err := os.Symlink(filepath.Join(y.dir, "store"), way); err != nil {
			t.Fatal(err)
		}
	}
	lead()
	own, err := store.Open(t.Context(), way)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Close() })
	l := c.distant("n", func(cfg *NodeConfig) { cfg.Store = own })
	in := c.cutInput()
	in.Definition.Tasks["a"].Retry = &v1.RetryPolicy{MaxRetries: new(int32)}
	h := c.submit(in)
	c.running("a")
	eventually(t, "the server knows that it runs", h.spawned)
	l.cut()
	if err := os.Remove(way); err != nil {
		t.Fatal(err)
	}
	c.fake.Release("a")
	eventually(t, "the attempt is lost", func() bool { return h.awaits(names.AwaitAnswerActivity) })
	l.mend()
	reg := registry.New(c.conn)
	var first int64
	eventually(t, "the node has beaten for some time", func() bool {
		e, err := reg.Entry(t.Context(), c.name("n"))
		if err != nil || e.Snapshot == nil {
			return false
		}
		if first == 0 {
			first = e.Snapshot.GetSequence()
		}
		return e.Snapshot.GetSequence() > first+6
	})
	if a := h.status(&v1.StatusRequest{}).GetRun().GetTasks()["a"]; a.GetCompletedAt() != nil {
		t.Fatalf("it has ended: %v", a)
	}
	lead()
	want(t, h.wait(), "completed", map[string]string{"a": "completed"})
	if n := c.calls()["a"]; n != 1 {
		t.Errorf("it ran %d times", n)
	}
}

// awaits reports whether an activity of the given type is pending.
func (h *handle) awaits(activity string) bool {
	h.t.Helper()
	d := describe(h.t, h.conn, h.id, "")
	return slices.ContainsFunc(d.GetPendingActivities(), func(a *workflowpb.PendingActivityInfo) bool {
		return a.GetActivityType().GetName() == activity
	})
}

// TestRetryFindsWhatLostAttemptHasLeft checks that a new generation of a run looks for results that lost attempts of
// earlier generations have stored meanwhile.
func TestRetryFindsWhatLostAttemptHasLeft(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"a": {{Block: true}}})
	l := c.distant("n")
	in := c.cutInput()
	in.Definition.Tasks["a"].Retry = &v1.RetryPolicy{MaxRetries: new(int32)}
	h := c.submit(in)
	c.running("a")
	eventually(t, "the server knows that it runs", h.spawned)
	l.cut()
	want(t, h.wait(), "failed", map[string]string{"a": "lost"})
	// As if the node had written its spooled record.
	record := &v1.ExecuteResponse{State: "completed", Node: c.name("n"), Result: &v1.TaskResult{Stdout: "late"}}
	if err := c.store.PutMessage(t.Context(), storekey.Result(h.home(), 0, "a", 0), record); err != nil {
		t.Fatal(err)
	}
	l.mend()
	run := h.anew(in, 1, &v1.Rerun{Failed: true}).wait()
	want(t, run, "completed", map[string]string{"a": "completed"})
	if a := run.GetTasks()["a"]; c.calls()["a"] != 1 || a.GetResult().GetStdout() != "late" {
		t.Errorf("it ran %d times: %v", c.calls()["a"], a)
	}
}

// spawned reports whether the server knows that the process of an attempt runs.
func (h *handle) spawned() bool {
	h.t.Helper()
	d := describe(h.t, h.conn, h.id, "")
	for _, a := range d.GetPendingActivities() {
		var p v1.ExecuteProgress
		if a.GetHeartbeatDetails() != nil && NewDataConverter().FromPayloads(a.GetHeartbeatDetails(), &p) == nil && p.GetSpawned() {
			return true
		}
	}
	return false
}
