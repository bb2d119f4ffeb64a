package workers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/executor/fake"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// withLasting makes a node run lasting tasks on fake machines, which outlive its workers.
func (c *workerSet) withLasting(m *fake.Machines) func(*NodeConfig) {
	dir := filepath.Join(c.t.TempDir(), "state")
	return func(cfg *NodeConfig) {
		cfg.StateDir = dir
		cfg.Executors = append(cfg.Executors, fake.NewLasting(v1.TypeVPS, m), fake.New(v1.TypeContainer, nil))
	}
}

// lastingInput parses a definition whose container tasks are lasting, and makes the activities of silent nodes time out
// early.
func (c *workerSet) lastingInput(document string) *v1.RunInput {
	c.t.Helper()
	in := c.input(document)
	for _, task := range in.GetDefinition().GetTasks() {
		if task.GetType() == v1.TypeContainer {
			task.Type = v1.TypeVPS
		}
	}
	in.Options.HeartbeatTimeout = durationpb.New(4 * time.Second)
	return in
}

// awaitMachine waits until the only machine of a task satisfies a condition.
func (c *workerSet) awaitMachine(m *fake.Machines, task, what string, holds func(fake.Machine) bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), limit)
	defer cancel()
	if err := m.Await(ctx, task, func(all []fake.Machine) bool { return len(all) == 1 && holds(all[0]) }); err != nil {
		c.t.Fatalf("waited in vain: %s; %+v", what, m.All(task))
	}
}

func isAway(x *v1.Task) bool {
	return x.GetState() == v1.TaskLost && x.GetNotice() != "" && x.GetReason() == v1.ReasonNodeLost && x.GetCompletedAt() != nil
}

func isBack(x *v1.Task) bool {
	return x.GetState() == v1.TaskRunning && x.GetNotice() == "" && x.GetCompletedAt() == nil && x.GetStartedAt() != nil
}

// reported waits until the server knows that the attempt of a task has started.
func (c *workerSet) reported(m *fake.Machines, task string) {
	c.t.Helper()
	c.awaitMachine(m, task, "it runs", func(one fake.Machine) bool { return one.Running && one.Attended == 1 })
	eventually(c.t, "the server knows that it has started", func() bool { return m.All(task)[0].Attempt.Lease.StopAt() > 1<<62 })
}

// TestLastingTaskIsLostUntilItsNodeIsBack checks that a vps whose node is away is lost until the node returns, with the
// same attempt, which was started once.
func TestLastingTaskIsLostUntilItsNodeIsBack(t *testing.T) {
	t.Parallel()
	c, m := shared(t).workers(t, nil), fake.NewMachines()
	with := c.withLasting(m)
	first := c.start("n", with)
	h := c.submit(c.lastingInput(`{name: lasting-lost, tasks: {x: {type: container, spec: {image: x}}}}`))
	c.reported(m, "x")
	first.Stop()
	h.until("x", isAway)
	if one := m.All("x")[0]; !one.Running || one.Attended != 0 {
		t.Errorf("the machine is %+v", one)
	}
	wantRefused(t, h.update(names.RestartTaskUpdate, command("x")), names.TaskStateError, "is lost until node")
	second := c.start("n", with)
	h.until("x", isBack)
	c.awaitMachine(m, "x", "it is reattached", func(one fake.Machine) bool { return one.Attended == 1 && one.Reattached == 1 })
	h.must(names.RestartTaskUpdate, "x")
	c.awaitMachine(m, "x", "it is restarted", func(one fake.Machine) bool { return one.Restarts == 1 })

	// A quick restart goes unnoticed.
	second.Stop()
	c.start("n", with)
	c.awaitMachine(m, "x", "it is reattached", func(one fake.Machine) bool { return one.Attended == 1 && one.Reattached == 2 })
	h.must(names.StopTaskUpdate, "x")
	run := h.wait()
	want(t, run, "completed", map[string]string{"x": "stopped"})
	x := run.GetTasks()["x"]
	if one := m.All("x"); len(one) != 1 || one[0].Starts != 1 || x.GetAttempt() != 0 || len(x.GetAttempts()) != 1 {
		t.Errorf("the task is %v, its machines %+v", x, one)
	}
	if got := h.lifecycle("x", 1); strings.Count(got, "lost") != 1 || !strings.Contains(got, "lost found restarted") || !strings.HasSuffix(got, "completed") {
		t.Errorf("events: %s", got)
	}
	if n := len(h.history("")); n > 90 {
		t.Errorf("the history has %d events", n)
	}
	replay(t, "lasting-lost", limits.Run{}, h.history(""))
}

// TestLastingTaskEndsWithoutItsNode checks that ending a task whose node is away takes effect at once, and that the
// node removes the machine when it returns.
func TestLastingTaskEndsWithoutItsNode(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end        func(h *handle)
		run, state string
	}{
		"kill":   {func(h *handle) { h.must(names.KillTaskUpdate, "x") }, "failed", "killed killed"},
		"stop":   {func(h *handle) { h.must(names.StopTaskUpdate, "x") }, "completed", "stopped"},
		"cancel": {func(h *handle) { h.signal("enough") }, "cancelled", "cancelled run_cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, m := shared(t).workers(t, nil), fake.NewMachines()
			with := c.withLasting(m)
			first := c.start("n", with)
			h := c.submit(c.lastingInput(fmt.Sprintf(`{name: lasting-%s, tasks: {x: {type: container, spec: {image: x}}}}`, name)))
			c.reported(m, "x")
			first.Stop()
			h.until("x", isAway)
			test.end(h)
			want(t, h.wait(), test.run, map[string]string{"x": test.state})
			if one := m.All("x")[0]; !one.Running {
				t.Error("it has ended without its node")
			}
			c.start("n", with)
			c.awaitMachine(m, "x", "it is removed", func(one fake.Machine) bool { return one.Removed && one.Reattached == 0 })
			replay(t, "lasting-"+name, limits.Run{}, h.history(""))
		})
	}
}

// TestLastingTaskIsLostWithItsMachine checks that a node that returns without the machine has lost it, and that the
// task is not retried.
func TestLastingTaskIsLostWithItsMachine(t *testing.T) {
	t.Parallel()
	c, m := shared(t).workers(t, nil), fake.NewMachines()
	first := c.start("n", c.withLasting(m))
	h := c.submit(c.lastingInput(`{name: lasting-gone, tasks: {x: {type: container, spec: {image: x}}}}`))
	c.reported(m, "x")
	first.Stop()
	h.until("x", isAway)
	c.start("n", c.withLasting(fake.NewMachines())) // another disk
	run := h.wait()
	want(t, run, "failed", map[string]string{"x": "lost node_lost"})
	if x := run.GetTasks()["x"]; x.GetNotice() != "" || x.GetAttempt() != 0 || x.GetCompletedAt() == nil {
		t.Errorf("the task is %v", x)
	}
	replay(t, "lasting-gone", limits.Run{}, h.history(""))
}

// TestLastingTaskOutlivesContinueAsNew checks that a run continues as new with a running vps and with one whose node is
// away, and that a network outage ends nothing.
func TestLastingTaskOutlivesContinueAsNew(t *testing.T) {
	t.Parallel()
	limits := detachLimits()
	y := own(t, ControlConfig{limits: limits})
	c := y.workers(t, script{"t05": {{Block: true}}, "t20": {{Block: true}}})
	m := fake.NewMachines()
	c.start("n")
	l := c.distant("far", c.withLasting(m))
	def := chainBeside(40, map[string]*v1.TaskDefinition{"x": shellTask()})
	for _, task := range def.GetTasks() {
		task.Constraints = &v1.Constraints{TargetNode: c.name("n")}
	}
	def.Tasks["x"].Type, def.Tasks["x"].Constraints.TargetNode, def.Tasks["x"].HeartbeatTimeout = v1.TypeVPS, c.name("far"), "4s"
	h := c.submit(c.inputOf(def))
	c.reported(m, "x")
	c.running("t05")
	c.fake.Release("t05")
	c.running("t20")
	attended := len(h.executions())
	if attended < 2 {
		t.Errorf("%d executions before the cut", attended)
	}
	l.cut()
	h.until("x", isAway)
	c.fake.Release("t20")
	h.until("t39", func(x *v1.Task) bool { return x.GetState() == "completed" })
	if !isAway(h.status(&v1.StatusRequest{}).GetRun().GetTasks()["x"]) || len(h.executions()) <= attended {
		t.Errorf("%d executions; x is %v", len(h.executions()), h.status(&v1.StatusRequest{}).GetRun().GetTasks()["x"])
	}
	if one := m.All("x")[0]; !one.Running || one.Attended != 1 {
		t.Errorf("the machine is %+v", one)
	}
	l.mend()
	h.until("x", isBack)
	h.must(names.StopTaskUpdate, "x")
	run := h.wait()
	want(t, run, "completed", map[string]string{"x": "stopped"})
	if one := m.All("x"); len(one) != 1 || one[0].Starts != 1 || one[0].Reattached != 0 {
		t.Errorf("the machines are %+v", one)
	}
	executions := h.executions() // the run continues as new once more while the node of x is away
	for i, execution := range executions[len(executions)-2:] {
		replay(t, fmt.Sprintf("lasting-continued-%d", i), limits, h.history(execution))
	}
}

// TestStopIsForTasksThatLast checks that only lasting tasks can be stopped and restarted.
func TestStopIsForTasksThatLast(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"a": {{Block: true}}})
	c.start("n")
	h := c.submit(c.input(`{name: lasting-refused, tasks: {a: {type: shell, spec: {command: x}}}}`))
	c.running("a")
	for _, update := range []string{names.StopTaskUpdate, names.RestartTaskUpdate} {
		wantRefused(t, h.update(update, command("a")), names.TaskStateError, "is for tasks that run until they are stopped")
	}
	c.fake.Release("a")
	want(t, h.wait(), "completed", map[string]string{"a": "completed"})
}

// TestNodeOffersNoMachinesThatItCannotFindAgain checks that a node that would lose its machines with its worker offers
// none, and names the remedy.
func TestNodeOffersNoMachinesThatItCannotFindAgain(t *testing.T) {
	t.Parallel()
	c, m := shared(t).workers(t, nil), fake.NewMachines()
	dir := filepath.Join(c.t.TempDir(), "open")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	with := func(cfg *NodeConfig) {
		cfg.StateDir = dir
		cfg.Executors = append(cfg.Executors, fake.NewLasting(v1.TypeVPS, m), fake.New(v1.TypeContainer, nil))
	}
	first := c.start("n", with)
	seen := c.state(c.name("n"), v1.NodeActive)
	if slices.Contains(seen.GetExecutors(), v1.TypeVPS) || len(seen.GetExecutors()) == 0 {
		t.Errorf("the node offers %v", seen.GetExecutors())
	}
	if why := seen.GetSnapshot().GetWithheld()[v1.TypeVPS]; !strings.Contains(why, "chmod 700 "+dir) || !strings.Contains(why, "--scratch-dir") {
		t.Errorf("it says %q", why)
	}
	h := c.submit(c.lastingInput(`{name: lasting-withheld, tasks: {x: {type: container, spec: {image: x}}}}`))
	first.Stop()
	if n := len(m.All("x")); n > 0 {
		t.Errorf("%d machines were started", n)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	c.start("n", with)
	c.reported(m, "x")
	h.must(names.StopTaskUpdate, "x")
	want(t, h.wait(), "completed", map[string]string{"x": "stopped"})
}
