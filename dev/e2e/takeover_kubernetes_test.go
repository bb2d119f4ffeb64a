//go:build kubernetes

package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"switchyard/dev/kubetest"
	"switchyard/dev/processes"
)

// takeover is a run whose Job moves to another node.
type takeover struct {
	k             *kubeStack
	id, namespace string
	lines         int
	follower      *processes.Program
	uid           string
}

// beginTakeover starts a Job on the only node of a cluster, and returns when the Job has printed something.
func beginTakeover(t *testing.T, k *kubeStack, name string, lines int) *takeover {
	t.Helper()
	o := &takeover{k: k, namespace: k.cluster.NewNamespace(t), lines: lines}
	o.id = k.Submit(t, counting("kube-"+name, name, o.namespace, lines))
	o.follower = start(t, "runs", "logs", "-f", o.id, "count", "--gateway", k.Gateway)
	o.follower.Line(o.follower.Stdout, "line 20")
	jobs := k.jobs(t, o.namespace, o.id)
	if len(jobs) != 1 {
		t.Fatalf("there are %d Jobs", len(jobs))
	}
	o.uid = string(jobs[0].UID)
	return o
}

// check waits for the end of the run, and checks that its Job, attempt and log are the same as without a takeover.
func (o *takeover) check(t *testing.T, node string) {
	t.Helper()
	d := o.k.End(t, o.id)
	if got := d.Tasks["count"]; got.State != "completed" || got.Attempt != 0 || got.Node != node {
		t.Errorf("the task is %+v", got)
	}
	jobs := o.k.jobs(t, o.namespace, o.id) // the status may lag behind; the result comes from the pod
	if len(jobs) != 1 || string(jobs[0].UID) != o.uid {
		t.Errorf("the Jobs are %+v", jobs)
	}
	want := counted(o.lines)
	awaitWholeLog(t, o.k.Gateway, o.id, "count", want)
	if code := o.follower.Wait(); code != 0 {
		t.Errorf("the follower exits with %d", code)
	}
	if got := o.follower.Stdout.String(); got != want {
		t.Errorf("the follower has not the log of the program: %s", difference(got, want))
	}
}

// difference describes where two texts first differ.
func difference(got, want string) string {
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	return fmt.Sprintf("after %d bytes comes %.80q, want %.80q", at, got[at:], want[at:])
}

// awaitNode waits until the task is on a node while its program runs.
func (o *takeover) awaitNode(t *testing.T, node string) {
	t.Helper()
	at := time.Now()
	processes.Await(t, node+" has the Job", func() bool {
		task := o.k.Get(t, o.id).Tasks["count"]
		return task.Node == node && task.State == "running" || task.State == "completed"
	})
	t.Logf("%s has the Job after %v", node, time.Since(at).Round(100*time.Millisecond))
	if state := o.k.Get(t, o.id).Tasks["count"].State; state != "running" {
		t.Errorf("the task is %s before %s has it", state, node)
	}
}

// testKilledWorkerLosesNoLine kills the worker of a Job, which another worker continues.
func testKilledWorkerLosesNoLine(t *testing.T, k *kubeStack) {
	first := k.join(t, "kill-1", "kill")
	o := beginTakeover(t, k, "kill", 1200) // longer than the heartbeat time-out
	k.join(t, "kill-2", "kill")
	first.Signal(syscall.SIGKILL)
	first.Wait()
	o.awaitNode(t, "kill-2")
	o.check(t, "kill-2")
	for _, e := range ask[list[eventItem]](t, k.Gateway, "runs", "events", o.id, "--task", "count").Items {
		if e.Attempt != 0 || e.Event == "retrying" || e.Event == "failed" {
			t.Errorf("an event is %+v", e)
		}
	}
}

// testDrainedWorkerHandsJobOver drains the worker of a Job.
func testDrainedWorkerHandsJobOver(t *testing.T, k *kubeStack) {
	k.join(t, "drain-1", "drain")
	o := beginTakeover(t, k, "drain", 600)
	k.join(t, "drain-2", "drain")
	do(t, k.Gateway, 0, "nodes", "drain", "drain-1", "--deadline", "100ms", "--wait")
	o.awaitNode(t, "drain-2")
	o.check(t, "drain-2")
}

// testJobOutlivesAPIServer makes the API server unavailable while a Job runs, until the Job has ended.
func testJobOutlivesAPIServer(t *testing.T, k *kubeStack, name string, away time.Duration, stop, start func(testing.TB)) {
	k.join(t, name+"-1", name)
	o := beginTakeover(t, k, name, 150)
	stop(t)
	time.Sleep(away)
	start(t)
	at := time.Now()
	o.k.End(t, o.id)
	t.Logf("the run has ended %v after the API server was back", time.Since(at).Round(time.Second))
	o.check(t, name+"-1")
}

// testJobOfTerminatedRunIsSwept terminates a run whose node is dead. The next node deletes the run's Job and no other.
func testJobOfTerminatedRunIsSwept(t *testing.T, k *kubeStack) {
	first := k.join(t, "terminated-1", "terminated")
	namespace, endless := k.cluster.NewNamespace(t), `
name: kube-%s
tasks:
  job: { type: k8s_job, spec: { cluster: terminated, namespace: %s, image: "%s", command: "echo up; exec sleep 1000" } }
`
	id := k.Submit(t, fmt.Sprintf(endless, "terminated", namespace, kubetest.BusyboxImage))
	wanted := k.Submit(t, fmt.Sprintf(endless, "wanted", namespace, kubetest.BusyboxImage))
	for _, run := range []string{id, wanted} {
		follower := startFollower(t, k, run)
		follower.Line(follower.Stdout, "up")
	}
	first.Signal(syscall.SIGKILL)
	first.Wait()
	c, err := client.Dial(client.Options{HostPort: strings.TrimPrefix(k.Temporal, "http://")})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.TerminateWorkflow(t.Context(), id, "", "test"); err != nil {
		t.Fatal(err)
	}
	if n := len(k.jobs(t, namespace, id)); n != 1 {
		t.Errorf("there are %d Jobs of the run before a node comes", n)
	}
	k.join(t, "terminated-2", "terminated", "--kube-sweep-interval", "1s")
	processes.Await(t, "the Job is swept", func() bool { return len(k.jobs(t, namespace, id)) == 0 })
	k.AwaitTask(t, wanted, "job", "running")
	if n := len(k.jobs(t, namespace, wanted)); n != 1 {
		t.Errorf("there are %d Jobs of the run that is open", n)
	}
	do(t, k.Gateway, 0, "runs", "cancel", wanted)
	processes.Await(t, "nothing is left", func() bool { return len(k.left(t, namespace)) == 0 })
}

// startFollower follows the log of the task "job" of a run.
func startFollower(t *testing.T, k *kubeStack, id string) *processes.Program {
	t.Helper()
	return start(t, "runs", "logs", "-f", id, "job", "--gateway", k.Gateway)
}
