package taskrunner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// lastingNode is a machine with a worker that runs lasting attempts.
type lastingNode struct {
	*bench
	machines *fake.Machines
	// unwanted makes Wanted return false, and asked counts the calls of Wanted.
	unwanted atomic.Bool
	asked    atomic.Int32
}

func newLastingNode(t *testing.T) *lastingNode {
	t.Helper()
	l := &lastingNode{bench: newBench(t, nil), machines: fake.NewMachines()}
	l.State.Dir = filepath.Join(t.TempDir(), "state")
	l.prepare()
	return l
}

func (l *lastingNode) prepare() {
	l.heartbeat, l.Timing.WantedInterval = time.Minute, 10*time.Millisecond
	l.Executors = map[string]executor.Executor{v1.TypeVPS: fake.NewLasting(v1.TypeVPS, l.machines), "shell": l.fake}
	l.Wanted = func(context.Context, executor.Identity) (bool, error) {
		l.asked.Add(1)
		return !l.unwanted.Load(), nil
	}
	l.t.Cleanup(func() {
		l.LetGo("the test ends")
		l.AwaitEnds(context.Background())
	})
}

// next returns the next worker of the same machine before its recovery.
func (l *lastingNode) next() *lastingNode {
	l.t.Helper()
	b := newBench(l.t, nil)
	b.Store, b.State.Dir = l.Store, l.State.Dir
	n := &lastingNode{bench: b, machines: l.machines}
	n.prepare()
	return n
}

// recovers makes the worker recover what an earlier one has left.
func (l *lastingNode) recovers() {
	l.t.Helper()
	end := l.Recover(l.t.Context())
	l.t.Cleanup(func() {
		l.LetGo("the test ends")
		end(context.Background())
	})
}

func vpsRequest(spec map[string]any) *historyv1.ExecuteRequest {
	req := request("a")
	req.Type = v1.TypeVPS
	if spec != nil {
		req.Spec, _ = structpb.NewStruct(spec)
	}
	return req
}

// await waits until a condition holds for the only machine of task a, and returns the machine.
func (l *lastingNode) await(what string, holds func(m fake.Machine) bool) fake.Machine {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	var found fake.Machine
	if err := l.machines.Await(ctx, "a", func(all []fake.Machine) bool {
		if len(all) != 1 || !holds(all[0]) {
			return false
		}
		found = all[0]
		return true
	}); err != nil {
		l.t.Fatalf("waited in vain: %s; %+v", what, l.machines.All("a"))
	}
	return found
}

// lasts starts an attempt and waits until it is lasting.
func (l *lastingNode) lasts(spec map[string]any) *execution {
	l.t.Helper()
	e := l.start(l.t.Context(), vpsRequest(spec))
	testneeds.Await(l.t, "the attempt is lasting", func() bool {
		all := l.attempts.all()
		return len(all) == 1 && all[0].isLasting()
	})
	return e
}

// leaves stops the worker and checks that it does not answer the execution.
func (l *lastingNode) leaves(e *execution) {
	l.t.Helper()
	l.BeginDrain(time.Now(), "the worker stops")
	l.LetGo("the worker stops")
	select {
	case <-e.done:
	case <-time.After(patience):
		l.t.Fatal("Execute does not return")
	}
	if e.err != errLetGo {
		l.t.Fatalf("the activity ends with %v, %v", e.res, e.err)
	}
	l.await("it runs without a worker", func(m fake.Machine) bool { return m.Running && m.Attended == 0 })
	if files, _ := filepath.Glob(filepath.Join(l.State.Dir, "*"+recoverySuffix)); len(files) != 1 {
		l.t.Fatalf("%v are kept", files)
	}
}

func (l *lastingNode) steer(action string) string {
	l.t.Helper()
	res, err := l.Steer(l.t.Context(), &historyv1.SteerRequest{RunId: "r-1", Task: "a", Claim: 1, Action: action})
	if err != nil {
		l.t.Fatal(err)
	}
	return res.GetRefused()
}

func gone(int, *historyv1.ExecuteProgress) error { return serviceerror.NewNotFound("no such activity") }

func reattaching() *historyv1.ExecuteRequest {
	req := vpsRequest(nil)
	req.Reattach = true
	return req
}

// A lasting attempt whose activity is gone continues indefinitely, and another activity gets its answer.
func TestLastingAttemptContinuesWithoutItsActivity(t *testing.T) {
	t.Parallel()
	l := newLastingNode(t)
	l.Timing.BeatInterval = 20 * time.Millisecond
	e := l.lasts(nil)
	l.server.say(gone)
	e.answer() // the server does not accept this answer
	testneeds.Await(t, "the run is asked again and again", func() bool { return l.asked.Load() > 2 })
	if refused := l.steer("find"); refused != "" {
		t.Errorf("the node does not have it: %s", refused)
	}
	l.server.say(nil)
	second := l.startAs(t.Context(), "second", reattaching())
	testneeds.Await(t, "the second activity beats", func() bool { return l.server.hears() == "second" })
	l.machines.End("a", executor.Result{})
	want(t, second.answer(), "completed", "")
	if m := l.machines.All("a")[0]; m.Starts != 1 {
		t.Errorf("it was started %d times", m.Starts)
	}
}

// An unattended attempt ends if its run does not wait for it.
func TestUnwantedLastingAttemptEnds(t *testing.T) {
	t.Parallel()
	l := newLastingNode(t)
	l.Timing.BeatInterval = 20 * time.Millisecond
	e := l.lasts(nil)
	l.unwanted.Store(true)
	l.server.say(gone)
	e.answer()
	l.await("it is removed", func(m fake.Machine) bool { return m.Removed })
	testneeds.Await(t, "the node forgets it", func() bool { return l.live() == 0 })
	if refused := l.steer("find"); refused == "" {
		t.Error("the node has it still")
	}
}

// A worker without its state does not report an attempt as gone, because a later worker may find it.
func TestLastingAttemptIsNotGivenUpWithoutState(t *testing.T) {
	t.Parallel()
	l := newLastingNode(t)
	l.State.Dir = ""
	res, err := l.Steer(t.Context(), &historyv1.SteerRequest{RunId: "r-1", Task: "a", Claim: 1, Action: "find"})
	if err == nil {
		t.Errorf("the node answers %v", res)
	}
}

// The lease ends an attempt until the server knows that the attempt has started, and never afterwards.
func TestLeaseEndsNoLastingAttempt(t *testing.T) {
	t.Parallel()
	l := newLastingNode(t)
	e := l.lasts(nil)
	if end := l.attempts.all()[0].beats.lease.StopAt(); end != executor.Never {
		t.Errorf("the lease ends in %v", end.Sub(executor.Now()))
	}
	if refused := l.steer("stop"); refused != "" {
		t.Error(refused)
	}
	want(t, e.answer(), "stopped", "")

	unknown := newLastingNode(t)
	want(t, unknown.losesLease(vpsRequest(nil)), "moved", "lease_lost")
	unknown.await("it is removed", func(m fake.Machine) bool { return m.Removed })
}

// A worker that stops lets go of a lasting attempt without an answer, and the next worker answers the same activity.
func TestLastingAttemptOutlivesWorkersThatStop(t *testing.T) {
	t.Parallel()
	first := newLastingNode(t)
	first.leaves(first.lasts(nil))
	second := first.next()
	second.recovers()
	testneeds.Await(t, "it is an attempt of the second worker", func() bool { return second.live() == 1 && second.server.hears() == "token" })
	second.await("it is reattached", func(m fake.Machine) bool { return m.Attended == 1 })
	second.LetGo("the worker stops")
	second.await("the second worker leaves it", func(m fake.Machine) bool { return m.Attended == 0 })
	if second.server.answered("token") != nil {
		t.Error("the second worker has answered the activity")
	}
	third := first.next()
	third.recovers()
	third.await("it is reattached", func(m fake.Machine) bool { return m.Attended == 1 })
	third.machines.End("a", executor.Result{})
	testneeds.Await(t, "the activity is answered", func() bool { return third.server.answered("token") != nil })
	want(t, third.server.answered("token"), "completed", "")
	if m := third.machines.All("a")[0]; m.Starts != 1 || m.Reattached != 2 {
		t.Errorf("it was started %d times and continued %d times", m.Starts, m.Reattached)
	}
	testneeds.Await(t, "nothing is left", func() bool {
		left, _ := filepath.Glob(filepath.Join(third.State.Dir, "*"+recoverySuffix))
		workspaces, _ := os.ReadDir(filepath.Join(third.State.Dir, survivorsFolder))
		return len(left) == 0 && len(workspaces) == 0
	})
}

// A leftover of a lasting attempt whose activity is gone is continued if its run waits for it, and removed if not. While
// that is unknown, it is left alone.
func TestLastingAttemptIsRecoveredIfItsRunWaits(t *testing.T) {
	t.Parallel()
	for name, wanted := range map[string]bool{"waits": true, "does not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := newLastingNode(t)
			first.leaves(first.lasts(nil))
			second := first.next()
			second.server.close("token")
			var unknown atomic.Bool
			unknown.Store(true)
			second.Wanted = func(context.Context, executor.Identity) (bool, error) {
				second.asked.Add(1)
				if unknown.Load() {
					return false, errors.New("the run does not answer")
				}
				return wanted, nil
			}
			go func() {
				testneeds.Await(t, "it is asked again", func() bool { return second.asked.Load() > 1 })
				unknown.Store(false)
			}()
			second.recovers()
			refused := second.steer("find") // waits until the recovery has decided
			if (refused == "") != wanted {
				t.Errorf("refused: %q", refused)
			}
			if !wanted {
				second.await("it is removed", func(m fake.Machine) bool { return m.Removed })
				want(t, second.startAs(t.Context(), "second", reattaching()).answer(), "lost", "node_lost")
				return
			}
			e := second.startAs(t.Context(), "second", reattaching())
			testneeds.Await(t, "the second activity beats", func() bool { return second.server.hears() == "second" })
			second.await("it is reattached", func(m fake.Machine) bool { return m.Attended == 1 })
			if refused := second.steer("stop"); refused != "" {
				t.Error(refused)
			}
			want(t, e.answer(), "stopped", "")
		})
	}
}

// If no activity has taken the answer of a stopped attempt, the next worker finds its record.
func TestStoppedLastingAttemptIsRecorded(t *testing.T) {
	t.Parallel()
	first := newLastingNode(t)
	first.Timing.BeatInterval = 20 * time.Millisecond
	e := first.lasts(nil)
	first.server.say(gone)
	e.answer()
	if refused := first.steer("stop"); refused != "" {
		t.Fatal(refused)
	}
	testneeds.Await(t, "it has ended", func() bool { return first.attempts.all()[0].attendance.isOver() })
	first.LetGo("the worker stops")
	if first.live() != 0 {
		t.Error("it is not forgotten")
	}
	second := first.next()
	second.recovers()
	if refused := second.steer("find"); refused == "" {
		t.Error("the second worker has it")
	}
	want(t, second.startAs(t.Context(), "second", reattaching()).answer(), "stopped", "")
}

// A drain neither ends a lasting attempt nor waits for it. Sessions can enter the attempt meanwhile.
func TestDrainLeavesLastingAttempts(t *testing.T) {
	t.Parallel()
	l := newLastingNode(t)
	e := l.lasts(nil)
	l.BeginDrain(time.Now(), "kernel")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := l.AwaitIdle(ctx); err != nil {
		t.Error(err)
	}
	_, leave, err := l.Enter(ctx, &v1.SessionHeader{RunId: "r-1", Task: "a", Claim: 1})
	if err != nil {
		t.Fatal(err)
	}
	leave()
	l.machines.End("a", executor.Result{ExitCode: 3})
	want(t, e.answer(), "failed", "exit_code")
}

func TestLastingAttemptIsSteered(t *testing.T) {
	t.Parallel()
	l := newLastingNode(t)
	e := l.lasts(nil)
	if refused := l.steer("restart"); refused != "" {
		t.Error(refused)
	}
	l.await("it is started again", func(m fake.Machine) bool { return m.Restarts == 1 && m.Attended == 1 })
	if refused := l.steer("find"); refused != "" {
		t.Error(refused)
	}
	l.steer("stop")
	res := e.answer()
	want(t, res, "stopped", "")
	if res.GetResult().GetExitCode() != 143 {
		t.Errorf("the answer is %v", res)
	}
	if refused := l.steer("stop"); refused == "" {
		t.Error("it is stopped after its end")
	}

	b := newBench(t, map[string][]fake.Step{"a": {{Block: true}}})
	shell := b.start(t.Context(), request("a"))
	b.runs("a")
	for _, action := range []string{"stop", "restart"} {
		res, err := b.Steer(t.Context(), &historyv1.SteerRequest{RunId: "r-1", Task: "a", Claim: 1, Action: action})
		if err != nil || res.GetRefused() == "" {
			t.Errorf("%s: %v, %v", action, res, err)
		}
	}
	b.fake.Release("a")
	shell.answer()
}

// Without a worker, a lasting attempt outlives any lease.
func TestEndOverdueLeavesLastingAttempts(t *testing.T) {
	t.Parallel()
	l := newLastingNode(t)
	l.leaves(l.lasts(nil))
	files, _ := filepath.Glob(filepath.Join(l.State.Dir, "*"+recoverySuffix))
	past := time.Now().Add(-24 * time.Hour)
	if err := os.Chtimes(files[0], past, past); err != nil {
		t.Fatal(err)
	}
	left, err := (&Keeper{Dir: l.State.Dir, Node: "n", Executor: fake.NewLasting(v1.TypeVPS, l.machines)}).EndOverdue(t.Context())
	if m := l.machines.All("a")[0]; left != 0 || err != nil || !m.Running {
		t.Errorf("%d are left to be ended, %v; it is %+v", left, err, m)
	}
}
