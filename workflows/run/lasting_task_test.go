package run_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/executor/fake"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// withLasting makes a node run lasting tasks on fake machines, which outlive its workers.
func withLasting(c *workertest.Nodes, m *fake.Machines) func(*workers.NodeConfig) {
	dir := filepath.Join(c.T.TempDir(), "state")
	return func(cfg *workers.NodeConfig) {
		cfg.StateDir = dir
		cfg.Executors = append(cfg.Executors, fake.NewLasting(v1.TypeVPS, m), fake.New(v1.TypeContainer, nil))
	}
}

// lastingInput parses a definition whose container tasks are lasting, and makes the activities of silent nodes time out
// early.
func lastingInput(c *workertest.Nodes, document string) *historyv1.RunInput {
	c.T.Helper()
	in := c.Input(document)
	for _, task := range in.GetDefinition().GetTasks() {
		if task.GetType() == v1.TypeContainer {
			task.Type = v1.TypeVPS
		}
	}
	in.Options.HeartbeatTimeout = durationpb.New(workertest.ShortHeartbeat)
	return in
}

// awaitMachine waits until the only machine of a task satisfies a condition.
func awaitMachine(c *workertest.Nodes, m *fake.Machines, task, what string, holds func(fake.Machine) bool) {
	c.T.Helper()
	ctx, cancel := context.WithTimeout(c.T.Context(), workertest.Limit)
	defer cancel()
	if err := m.Await(ctx, task, func(all []fake.Machine) bool { return len(all) == 1 && holds(all[0]) }); err != nil {
		c.T.Fatalf("waited in vain: %s; %+v", what, m.All(task))
	}
}

func isAway(x *v1.Task) bool {
	return x.GetState() == v1.TaskLost && x.GetNotice() != "" && x.GetReason() == v1.ReasonNodeLost && x.GetCompletedAt() != nil
}

func isBack(x *v1.Task) bool {
	return x.GetState() == v1.TaskRunning && x.GetNotice() == "" && x.GetCompletedAt() == nil && x.GetStartedAt() != nil
}

// awaitReport waits until the server knows that the attempt of a task has started.
func awaitReport(c *workertest.Nodes, m *fake.Machines, task string) {
	c.T.Helper()
	awaitMachine(c, m, task, "it runs", func(one fake.Machine) bool { return one.Running && one.Attended == 1 })
	workertest.Eventually(c.T, "the server knows that it has started", func() bool { return m.All(task)[0].Attempt.Lease.StopAt() > 1<<62 })
}

// TestLastingTaskIsLostUntilItsNodeIsBack checks that a vps whose node is away is lost until the node returns, with the
// same attempt, which was started once.
func TestLastingTaskIsLostUntilItsNodeIsBack(t *testing.T) {
	t.Parallel()
	c, m := workertest.Shared(t).Nodes(t, nil), fake.NewMachines()
	with := withLasting(c, m)
	first := c.Start("n", with)
	h := c.Submit(lastingInput(c, `{name: lasting-lost, tasks: {x: {type: container, spec: {image: x}}}}`))
	awaitReport(c, m, "x")
	first.Stop()
	h.AwaitTask("x", isAway)
	if one := m.All("x")[0]; !one.Running || one.Attended != 0 {
		t.Errorf("the machine is %+v", one)
	}
	wantRefused(t, sendUpdate(h, names.RestartTaskUpdate, command("x")), names.TaskStateError, "is lost until node")
	second := c.Start("n", with)
	h.AwaitTask("x", isBack)
	awaitMachine(c, m, "x", "it is reattached", func(one fake.Machine) bool { return one.Attended == 1 && one.Reattached == 1 })
	mustUpdate(h, names.RestartTaskUpdate, "x")
	awaitMachine(c, m, "x", "it is restarted", func(one fake.Machine) bool { return one.Restarts == 1 })

	// A quick restart goes unnoticed.
	second.Stop()
	c.Start("n", with)
	awaitMachine(c, m, "x", "it is reattached", func(one fake.Machine) bool { return one.Attended == 1 && one.Reattached == 2 })
	mustUpdate(h, names.StopTaskUpdate, "x")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"x": "stopped"})
	x := run.GetTasks()["x"]
	if one := m.All("x"); len(one) != 1 || one[0].Starts != 1 || x.GetAttempt() != 0 || len(x.GetAttempts()) != 1 {
		t.Errorf("the task is %v, its machines %+v", x, one)
	}
	if got := lifecycleOf(h, "x", 1); strings.Count(got, "lost") != 1 || !strings.Contains(got, "lost found restarted") || !strings.HasSuffix(got, "completed") {
		t.Errorf("events: %s", got)
	}
	if n := len(h.History("")); n > 90 {
		t.Errorf("the history has %d events", n)
	}
	workertest.Replay(t, "lasting-lost", limits.Run{}, h.History(""))
}

// TestLastingTaskEndsWithoutItsNode checks that ending a task whose node is away takes effect at once, and that the
// node removes the machine when it returns.
func TestLastingTaskEndsWithoutItsNode(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end        func(h *workertest.Handle)
		run, state string
	}{
		"kill":   {func(h *workertest.Handle) { mustUpdate(h, names.KillTaskUpdate, "x") }, "failed", "killed killed"},
		"stop":   {func(h *workertest.Handle) { mustUpdate(h, names.StopTaskUpdate, "x") }, "completed", "stopped"},
		"cancel": {func(h *workertest.Handle) { h.Cancel("enough") }, "cancelled", "cancelled run_cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, m := workertest.Shared(t).Nodes(t, nil), fake.NewMachines()
			with := withLasting(c, m)
			first := c.Start("n", with)
			h := c.Submit(lastingInput(c, fmt.Sprintf(`{name: lasting-%s, tasks: {x: {type: container, spec: {image: x}}}}`, name)))
			awaitReport(c, m, "x")
			first.Stop()
			h.AwaitTask("x", isAway)
			test.end(h)
			workertest.CheckRun(t, h.Wait(), test.run, map[string]string{"x": test.state})
			if one := m.All("x")[0]; !one.Running {
				t.Error("it has ended without its node")
			}
			c.Start("n", with)
			awaitMachine(c, m, "x", "it is removed", func(one fake.Machine) bool { return one.Removed && one.Reattached == 0 })
			workertest.Replay(t, "lasting-"+name, limits.Run{}, h.History(""))
		})
	}
}

// TestLastingTaskIsLostWithItsMachine checks that a node that returns without the machine has lost it, and that the
// task is not retried.
func TestLastingTaskIsLostWithItsMachine(t *testing.T) {
	t.Parallel()
	c, m := workertest.Shared(t).Nodes(t, nil), fake.NewMachines()
	first := c.Start("n", withLasting(c, m))
	h := c.Submit(lastingInput(c, `{name: lasting-gone, tasks: {x: {type: container, spec: {image: x}}}}`))
	awaitReport(c, m, "x")
	first.Stop()
	h.AwaitTask("x", isAway)
	c.Start("n", withLasting(c, fake.NewMachines())) // another disk
	run := h.Wait()
	workertest.CheckRun(t, run, "failed", map[string]string{"x": "lost node_lost"})
	if x := run.GetTasks()["x"]; x.GetNotice() != "" || x.GetAttempt() != 0 || x.GetCompletedAt() == nil {
		t.Errorf("the task is %v", x)
	}
	workertest.Replay(t, "lasting-gone", limits.Run{}, h.History(""))
}

// TestLastingTaskOutlivesContinueAsNew checks that a run continues as new with a running vps and with one whose node is
// away, and that a network outage ends nothing.
func TestLastingTaskOutlivesContinueAsNew(t *testing.T) {
	t.Parallel()
	limits := detachLimits()
	y := workertest.SharedWithin(t, limits)
	c := y.Nodes(t, workertest.Script{"t05": {{Block: true}}, "t20": {{Block: true}}})
	m := fake.NewMachines()
	c.Start("n")
	l := c.StartBehindLink("far", withLasting(c, m))
	def := chainBeside(40, map[string]*v1.TaskDefinition{"x": workertest.ShellTask()})
	for _, task := range def.GetTasks() {
		task.Constraints = &v1.Constraints{TargetNode: c.Name("n")}
	}
	def.Tasks["x"].Type, def.Tasks["x"].Constraints.TargetNode, def.Tasks["x"].HeartbeatTimeout = v1.TypeVPS, c.Name("far"), workertest.ShortHeartbeat.String()
	h := c.Submit(c.InputOf(def))
	awaitReport(c, m, "x")
	c.AwaitRunning("t05")
	c.Fake.Release("t05")
	c.AwaitRunning("t20")
	attended := len(executionsOf(h))
	if attended < 2 {
		t.Errorf("%d executions before the cut", attended)
	}
	l.Cut()
	h.AwaitTask("x", isAway)
	c.Fake.Release("t20")
	h.AwaitTask("t39", func(x *v1.Task) bool { return x.GetState() == "completed" })
	if !isAway(h.Status(&historyv1.StatusRequest{}).GetRun().GetTasks()["x"]) || len(executionsOf(h)) <= attended {
		t.Errorf("%d executions; x is %v", len(executionsOf(h)), h.Status(&historyv1.StatusRequest{}).GetRun().GetTasks()["x"])
	}
	if one := m.All("x")[0]; !one.Running || one.Attended != 1 {
		t.Errorf("the machine is %+v", one)
	}
	l.Mend()
	h.AwaitTask("x", isBack)
	mustUpdate(h, names.StopTaskUpdate, "x")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"x": "stopped"})
	if one := m.All("x"); len(one) != 1 || one[0].Starts != 1 || one[0].Reattached != 0 {
		t.Errorf("the machines are %+v", one)
	}
	executions := executionsOf(h) // the run continues as new once more while the node of x is away
	for i, execution := range executions[len(executions)-2:] {
		workertest.Replay(t, fmt.Sprintf("lasting-continued-%d", i), limits, h.History(execution))
	}
}

// TestNodeOffersNothingThatItCannotFindAgain checks that a node that would lose its machines and containers with its worker
// offers none, and names the remedy.
func TestNodeOffersNothingThatItCannotFindAgain(t *testing.T) {
	t.Parallel()
	c, m := workertest.Shared(t).Nodes(t, nil), fake.NewMachines()
	dir := filepath.Join(c.T.TempDir(), "open")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	with := func(cfg *workers.NodeConfig) {
		cfg.StateDir = dir
		cfg.Executors = append(cfg.Executors, fake.NewLasting(v1.TypeVPS, m), fake.NewSurvivor(v1.TypeContainer, nil))
	}
	first := c.Start("n", with)
	seen := c.AwaitState(c.Name("n"), v1.NodeActive)
	if slices.Contains(seen.GetExecutors(), v1.TypeVPS) || slices.Contains(seen.GetExecutors(), v1.TypeContainer) || len(seen.GetExecutors()) == 0 {
		t.Errorf("the node offers %v", seen.GetExecutors())
	}
	for _, taskType := range []string{v1.TypeVPS, v1.TypeContainer} {
		if why := seen.GetSnapshot().GetWithheld()[taskType]; !strings.Contains(why, "chmod 700 "+dir) || !strings.Contains(why, "--scratch-dir") {
			t.Errorf("it says of %s %q", taskType, why)
		}
	}
	h := c.Submit(lastingInput(c, `{name: lasting-withheld, tasks: {x: {type: container, spec: {image: x}}}}`))
	first.Stop()
	if n := len(m.All("x")); n > 0 {
		t.Errorf("%d machines were started", n)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	c.Start("n", with)
	awaitReport(c, m, "x")
	mustUpdate(h, names.StopTaskUpdate, "x")
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"x": "stopped"})
}
