package workers_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"switchyard/activities/environments"
	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// capturing is a fake container executor that can archive its containers.
type capturing struct {
	*fake.Executor
	archive []byte
	faults  atomic.Int32           // number of captures that are still to fail
	block   chan<- context.Context // if not nil, a capture sends its context there and blocks until that ends
}

// Capabilities adds those of a capturer to those of its executor.
func (e *capturing) Capabilities() executor.Capabilities {
	c := e.Executor.Capabilities()
	c.Capture = e
	return c
}

func (e *capturing) Capture(ctx context.Context, id string, to io.Writer) (executor.Captured, error) {
	if !strings.Contains(id, "desk") {
		return executor.Captured{}, &executor.Refusal{Text: "it is another"}
	}
	return e.write(ctx, to)
}

func (e *capturing) CaptureImage(ctx context.Context, image, _ string, to io.Writer, say func(string)) (executor.Captured, error) {
	say("pulling image " + image)
	return e.write(ctx, to)
}

func (e *capturing) write(ctx context.Context, to io.Writer) (executor.Captured, error) {
	if _, err := to.Write(e.archive); err != nil {
		return executor.Captured{}, err
	}
	if e.faults.Add(-1) >= 0 {
		return executor.Captured{}, errors.New("the engine does not answer")
	}
	if e.block != nil {
		e.block <- ctx
		<-ctx.Done()
		return executor.Captured{}, context.Cause(ctx)
	}
	return executor.Captured{Kind: v1.EnvironmentImage, ImageID: "sha256:1"}, nil
}

// startCreation starts the workflow that creates an environment.
func startCreation(c *workertest.Nodes, l *environments.Library, in *historyv1.CaptureRequest) client.WorkflowRun {
	c.T.Helper()
	e := in.GetEnvironment()
	e.Archive = environments.NewArchive()
	if err := l.Reserve(c.T.Context(), e.GetArchive(), e.GetNode(), e.GetName()); err != nil {
		c.T.Fatal(err)
	}
	run, err := c.Conn.ExecuteWorkflow(c.T.Context(), client.StartWorkflowOptions{ID: names.EnvironmentWorkflowID(e.GetName()), TaskQueue: names.ControlQueue}, names.EnvironmentWorkflow, in)
	if err != nil {
		c.T.Fatal(err)
	}
	return run
}

// checkNoArchive fails the test if any part of an archive is stored.
func checkNoArchive(c *workertest.Nodes, archive string) {
	c.T.Helper()
	for key, err := range c.Store.Keys(c.T.Context(), storekey.EnvironmentArchive(archive)) {
		if err != nil {
			c.T.Fatal(err)
		}
		c.T.Errorf("%s is stored", key)
	}
}

func TestEnvironmentIsMadeOfAnAttemptByItsNode(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	e := &capturing{Executor: fake.New(v1.TypeContainer, workertest.Script{"desk": {{Block: true}}, "other": {{Block: true}}}), archive: bytes.Repeat([]byte("files "), 2_000_000)}
	e.faults.Store(1)
	h := c.Submit(c.Input(`{name: captured-tasks, tasks: {desk: {type: container, spec: {image: x}}, other: {type: container, spec: {image: x}}}}`))
	node := c.Name("n")
	c.Start("n", func(cfg *workers.NodeConfig) { cfg.Executors = append(cfg.Executors, e) })
	for _, task := range []string{"desk", "other"} {
		if err := e.AwaitRunning(t.Context(), task); err != nil {
			t.Fatal(err)
		}
	}
	request := func(name, task string) *historyv1.CaptureRequest {
		in := &historyv1.CaptureRequest{Environment: &v1.Environment{Name: name, Node: node, Task: task}, Chain: h.Status(&historyv1.StatusRequest{}).GetChain(), Type: v1.TypeContainer, Claim: 77}
		for _, call := range e.Calls() {
			if call.Task == task {
				in.Environment.Run, in.Claim = call.Attempt.Identity.Run, int32(call.Attempt.Identity.Claim)
			}
		}
		if in.Environment.Run == "" {
			in.Environment.Run = e.Calls()[0].Attempt.Identity.Run
		}
		return in
	}
	l := environments.New(c.Store)
	in := request("captured-desk", "desk")
	ready := &v1.Environment{}
	if err := startCreation(c, l, in).Get(t.Context(), ready); err != nil {
		t.Fatal(err)
	}
	if ready.GetVersion() != 1 || ready.GetState() != v1.EnvironmentReady || ready.GetImageId() != "sha256:1" || ready.GetSize() != int64(len(e.archive)) || ready.GetParts() != 2 {
		t.Errorf("ready: %v", ready)
	}
	r, err := l.Open(t.Context(), ready)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, e.archive) {
		t.Errorf("%d bytes are stored, %v", len(got), err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	// The failed attempt has left nothing in the store.
	stored := 0
	for range c.Store.Keys(t.Context(), storekey.EnvironmentArchive(in.GetEnvironment().GetArchive())) {
		stored++
	}
	if stored != 2 {
		t.Errorf("%d values are stored of it", stored)
	}
	for name, test := range map[string]struct {
		in   *historyv1.CaptureRequest
		says string
	}{
		"captured-other":   {request("captured-other", "other"), "task other: it is another"},
		"captured-nothing": {request("captured-nothing", "gone"), "task gone has ended on node " + node + ", or never ran there"},
		"captured-claim":   {func() *historyv1.CaptureRequest { in := request("captured-claim", "desk"); in.Claim++; return in }(), "another dispatch of task desk runs on node " + node},
		"captured-disk":    {&historyv1.CaptureRequest{Environment: &v1.Environment{Name: "captured-disk", Node: node}, VmImage: "/x.qcow2"}, "cannot create environments from images of virtual machines"},
	} {
		err := startCreation(c, l, test.in).Get(t.Context(), nil)
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
		checkNoArchive(c, test.in.GetEnvironment().GetArchive())
	}
	e.Release("desk")
	e.Release("other")
	h.Wait()
}

func TestEnvironmentOfAnImageReplacesTheOlder(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	e := &capturing{Executor: fake.New(v1.TypeContainer, nil), archive: []byte("image")}
	c.Start("n", func(cfg *workers.NodeConfig) { cfg.Executors = append(cfg.Executors, e) })
	l := environments.New(c.Store)
	var archives, executions []string
	for version := range int32(2) {
		in := &historyv1.CaptureRequest{Environment: &v1.Environment{Name: "captured-image", Node: c.Name("n"), Image: "busybox", Version: version}}
		ready := &v1.Environment{}
		run := startCreation(c, l, in)
		if err := run.Get(t.Context(), ready); err != nil || ready.GetVersion() != version+1 {
			t.Fatalf("%v, %v", ready, err)
		}
		executions = append(executions, run.GetRunID())
		archives = append(archives, in.GetEnvironment().GetArchive())
	}
	checkNoArchive(c, archives[0])
	in := &historyv1.CaptureRequest{Environment: &v1.Environment{Name: "captured-image", Node: c.Name("n"), Image: "busybox"}}
	err := startCreation(c, l, in).Get(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "another environment has taken the name captured-image in the meantime") {
		t.Errorf("in the place of another: %v", err)
	}
	created := &workertest.Handle{Nodes: c, ID: names.EnvironmentWorkflowID("captured-image")}
	workertest.Replay(t, "environment-refused", limits.Run{}, created.History(""))
	workertest.Replay(t, "environment-replaced", limits.Run{}, created.History(executions[1]))
	checkNoArchive(c, in.GetEnvironment().GetArchive())
}

func TestCancelledCreationEndsItsCaptureAndLeavesNothing(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	begun := make(chan context.Context)
	e := &capturing{Executor: fake.New(v1.TypeContainer, nil), archive: bytes.Repeat([]byte("x"), 9<<20), block: begun}
	c.Start("n", func(cfg *workers.NodeConfig) { cfg.Executors = append(cfg.Executors, e) })
	in := &historyv1.CaptureRequest{Environment: &v1.Environment{Name: "captured-cancel", Node: c.Name("n"), Image: "busybox"}}
	run := startCreation(c, environments.New(c.Store), in)
	ctx := <-begun
	if err := c.Conn.CancelWorkflow(t.Context(), run.GetID(), ""); err != nil {
		t.Fatal(err)
	}
	if err := run.Get(t.Context(), nil); !temporal.IsCanceledError(err) {
		t.Errorf("%v", err)
	}
	if ctx.Err() == nil {
		t.Error("the capture continues")
	}
	workertest.Replay(t, "environment-cancelled", limits.Run{}, (&workertest.Handle{Nodes: c, ID: run.GetID()}).History(""))
	checkNoArchive(c, in.GetEnvironment().GetArchive())
}
