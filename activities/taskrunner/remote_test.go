package taskrunner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// newRemoteBench returns a bench whose node runs attempts in a cluster.
func newRemoteBench(t *testing.T, c *fake.Cluster) *bench {
	t.Helper()
	b := newBench(t, nil)
	b.heartbeat, b.Timing.BeatInterval = time.Minute, time.Second
	b.Executors = map[string]executor.Executor{v1.TypeK8sJob: fake.NewRemote(v1.TypeK8sJob, c)}
	t.Cleanup(func() {
		b.server.close("token")
		b.AwaitEnds(context.Background())
	})
	return b
}

func remoteRequest(task string) *historyv1.ExecuteRequest {
	req := request(task)
	req.Type = v1.TypeK8sJob
	return req
}

// awaitJob waits until a condition holds for the only job of task a, and returns the job.
func awaitJob(t *testing.T, c *fake.Cluster, what string, holds func(j fake.Job) bool) fake.Job {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var found fake.Job
	if err := c.Await(ctx, "a", func(jobs []fake.Job) bool {
		if len(jobs) == 0 || !holds(jobs[0]) {
			return false
		}
		found = jobs[0]
		return true
	}); err != nil {
		t.Fatalf("waited in vain: %s", what)
	}
	return found
}

func hasStarted(j fake.Job) bool { return j.Starts == 1 }

// If the node loses or hands back an attempt, the attempt keeps running. If the task ends, the attempt stops.
func TestRemoteAttemptIsLetGoOrStopped(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do            func(b *bench)                                // once the Job is there
		limit         func(b *bench, req *historyv1.ExecuteRequest) // before the start, for which a busy machine may need longer
		state, reason string
		stopped       bool
	}{
		"drain": {do: func(b *bench) { b.BeginDrain(time.Now().Add(time.Hour), "kernel") }, state: v1.AttemptMoved, reason: v1.ReasonDraining},
		"stop":  {do: func(b *bench) { close(b.stopping) }, state: v1.AttemptMoved, reason: v1.ReasonDraining},
		"lease": {limit: func(b *bench, _ *historyv1.ExecuteRequest) {
			b.heartbeat = 500 * time.Millisecond
			b.server.say(onlyTheFirst)
		}, state: v1.AttemptMoved, reason: v1.ReasonLeaseLost},
		"gone": {do: func(b *bench) {
			b.server.say(func(int, *historyv1.ExecuteProgress) error { return serviceerror.NewNotFound("no such activity") })
		}, state: v1.AttemptMoved, reason: v1.ReasonLeaseLost},
		"cancel": {do: func(b *bench) {
			b.server.say(func(int, *historyv1.ExecuteProgress) error { return temporal.NewCanceledError() })
		}, state: v1.TaskCancelled, reason: v1.ReasonCancelled, stopped: true},
		"time-out": {limit: func(_ *bench, req *historyv1.ExecuteRequest) {
			req.Timeout = durationpb.New(200 * time.Millisecond)
		}, state: v1.TaskFailed, reason: v1.ReasonTimeout, stopped: true},
	} {
		for _, held := range []bool{false, true} {
			if held {
				name += " before the start"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				testneeds.Await(t, "the Job is there in time", func() bool {
					c := fake.NewCluster()
					c.Hold(held)
					b, req := newRemoteBench(t, c), remoteRequest("a")
					if test.limit != nil {
						test.limit(b, req)
					}
					e := b.start(t.Context(), req)
					if test.do != nil {
						awaitJob(t, c, "the Job is there", func(j fake.Job) bool { return held || j.Starts == 1 })
						test.do(b)
					}
					res, jobs := e.answer(), c.Jobs("a")
					if started := res.GetStartedAt() != nil; len(jobs) == 0 || started == held {
						return false
					}
					want(t, res, test.state, test.reason)
					if j := jobs[0]; j.Stopped != test.stopped || j.Recorded != 0 {
						t.Errorf("the Job is %+v", j)
					}
					return true
				})
			})
		}
	}
}

// TestRemoteAttemptContinuesOnANodeThatRefusesTasks checks that only a drain lets go of the attempt.
func TestRemoteAttemptContinuesOnANodeThatRefusesTasks(t *testing.T) {
	t.Parallel()
	c := fake.NewCluster()
	b := newRemoteBench(t, c)
	e := b.start(t.Context(), remoteRequest("a"))
	awaitJob(t, c, "it has started", hasStarted)
	b.BeginRefusal(time.Time{}, "in use for a game")
	if b.live() != 1 {
		t.Error("the attempt has ended")
	}
	b.BeginDrain(time.Time{}, "")
	if res := e.answer(); res.GetError() != "node n is draining" {
		t.Errorf("got %v", res)
	}
}

// onlyTheFirst answers the first heartbeat only.
func onlyTheFirst(n int, _ *historyv1.ExecuteProgress) error {
	if n == 0 {
		return nil
	}
	return errAway
}

// The next dispatch continues an attempt that another node let go. Only its answer is recorded, once the server has it.
func TestRemoteAttemptContinuesOnAnotherNode(t *testing.T) {
	t.Parallel()
	c := fake.NewCluster()
	first := newRemoteBench(t, c)
	e := first.start(t.Context(), remoteRequest("a"))
	awaitJob(t, c, "it has started", hasStarted)
	first.BeginDrain(time.Time{}, "")
	want(t, e.answer(), v1.AttemptMoved, v1.ReasonDraining)

	second := newRemoteBench(t, c)
	req := remoteRequest("a")
	req.Claim, req.Continues, req.Generation = 2, true, 0
	req.Resources, req.Timeout = &v1.Resources{Gpus: 2}, durationpb.New(time.Hour)
	e = second.start(t.Context(), req)
	j := awaitJob(t, c, "another node has it", func(j fake.Job) bool { return len(j.Dispatches) == 2 })
	x := j.Dispatches[1]
	if !x.Remote.Continues || x.Remote.Timeout != time.Hour || x.Remote.Resources.GetGpus() != 2 || x.Identity.Claim != 2 || x.Waits == nil || j.Dispatches[0].Remote.Continues {
		t.Errorf("it continues as %+v", x)
	}
	x.Waits("waits for a node of the cluster")
	testneeds.Await(t, "a heartbeat has what it waits for", func() bool {
		beats := second.server.heard()
		return len(beats) > 0 && beats[len(beats)-1].GetNotice() == "waits for a node of the cluster"
	})
	c.End("a", executor.Result{})
	res := e.answer()
	want(t, res, v1.TaskCompleted, "")
	if j := c.Jobs("a")[0]; j.Starts != 1 || j.Recorded != 0 {
		t.Errorf("before the server has the answer: %+v", j)
	}
	second.server.close("token")
	second.AwaitEnds(t.Context())
	awaitJob(t, c, "its end counts as recorded", func(j fake.Job) bool { return j.Recorded == 1 })
}

// A node whose dispatch has been superseded hands the attempt over.
func TestRemoteAttemptIsFenced(t *testing.T) {
	t.Parallel()
	c := fake.NewCluster()
	first, second := newRemoteBench(t, c), newRemoteBench(t, c)
	e := first.start(t.Context(), remoteRequest("a"))
	awaitJob(t, c, "it has started", hasStarted)
	req := remoteRequest("a")
	req.Claim = 2
	last := second.start(t.Context(), req)
	res := e.answer()
	want(t, res, v1.AttemptMoved, v1.ReasonLeaseLost)
	if res.GetError() != "another node has the Job" {
		t.Errorf("the error is %q", res.GetError())
	}
	c.End("a", executor.Result{ExitCode: 3})
	want(t, last.answer(), v1.TaskFailed, v1.ReasonExitCode)
}

// The end of a remote program counts even if the lease was over by then.
func TestEndOfARemoteAttemptOutlivesItsLease(t *testing.T) {
	t.Parallel()
	b := newRemoteBench(t, fake.NewCluster())
	late := &lateRemote{fake.NewRemote(v1.TypeK8sJob, fake.NewCluster())}
	b.Executors = map[string]executor.Executor{v1.TypeK8sJob: late}
	want(t, b.losesLease(remoteRequest("a")), v1.TaskCompleted, "")
}

// lateRemote is a remote executor that reports a completed attempt after the lease is over.
type lateRemote struct{ *fake.Remote }

func (lateRemote) Run(_ context.Context, a executor.Attempt, spawned func()) (executor.Result, error) {
	spawned()
	for !a.Lease.Over() {
		time.Sleep(10 * time.Millisecond)
	}
	return executor.Result{}, nil
}

// An attempt that the cluster evicts is lost, and a later attempt may complete the task.
func TestEvictedRemoteAttemptIsLost(t *testing.T) {
	t.Parallel()
	c := fake.NewCluster()
	b := newRemoteBench(t, c)
	e := b.start(t.Context(), remoteRequest("a"))
	awaitJob(t, c, "it has started", hasStarted)
	c.End("a", executor.Result{Failure: &executor.Failure{Reason: v1.ReasonEvicted, Err: errors.New("its pod was evicted")}})
	res := e.answer()
	want(t, res, v1.TaskLost, v1.ReasonEvicted)
	if res.GetError() != "its pod was evicted" {
		t.Errorf("the error is %q", res.GetError())
	}
}

// When a worker is killed, its attempt is moved if it waits in the cluster, and lost if it runs there.
func TestClaimFileOfARemoteAttemptSaysWhetherItHasStarted(t *testing.T) {
	t.Parallel()
	c := fake.NewCluster()
	c.Hold(true)
	first := newRemoteBench(t, c)
	first.State.Dir = filepath.Join(t.TempDir(), "state")
	e := first.start(t.Context(), remoteRequest("a"))
	awaitJob(t, c, "the Job is there", func(fake.Job) bool { return true })
	answerOf := func() *historyv1.ExecuteResponse {
		dir := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(dir, os.DirFS(first.State.Dir)); err != nil {
			t.Fatal(err)
		}
		second := newRemoteBench(t, c)
		second.State.Dir = dir
		end := second.Recover(t.Context())
		defer end(t.Context())
		testneeds.Await(t, "the activity is answered", func() bool { return second.server.answered("token") != nil })
		return second.server.answered("token")
	}
	want(t, answerOf(), v1.AttemptMoved, v1.ReasonIncarnation)
	c.Hold(false)
	testneeds.Await(t, "the claim file says so", func() bool { return len(claimFiles(t, first.State.Dir, claimRunning)) == 1 })
	want(t, answerOf(), v1.TaskLost, v1.ReasonNodeLost)
	c.End("a", executor.Result{})
	want(t, e.answer(), v1.TaskCompleted, "")
}
