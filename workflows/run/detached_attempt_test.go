package run_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"switchyard/activities/logs"
	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

// within returns a context that ends when a test has waited too long.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), workertest.Limit)
	t.Cleanup(cancel)
	return ctx
}

// countDetaches returns how often each node was asked to detach attempts of the run.
func countDetaches(h *workertest.Handle) map[string]int {
	asked := map[string]int{}
	for _, execution := range executionsOf(h) {
		for _, e := range h.History(execution) {
			if s := scheduled(e, names.DetachActivity); s != nil {
				asked[s.GetTaskQueue().GetName()]++
			}
		}
	}
	return asked
}

// TestRunContinuesAsNewWhenQuiet checks that a run beyond the soft limit still starts tasks beside a long one, detaches
// nothing, and continues as new as soon as nothing is in flight.
func TestRunContinuesAsNewWhenQuiet(t *testing.T) {
	t.Parallel()
	y := workertest.SharedWithin(t, quietLimits)
	c := y.Nodes(t, workertest.Script{"long": {{Block: true}}})
	c.Start("n")
	h := c.Submit(c.InputOf(chainBeside(25, map[string]*v1.TaskDefinition{"long": workertest.ShellTask(), "after": workertest.ShellTask("long"), "last": workertest.ShellTask("after")})))
	h.AwaitTask("t24", func(x *v1.Task) bool { return x.GetState() == "completed" })
	if n, events := len(executionsOf(h)), len(h.History("")); n != 1 || events <= quietLimits.HistoryEvents {
		t.Errorf("%d executions, %d events", n, events)
	}
	c.Fake.Release("long")
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"long": "completed", "last": "completed"})
	executions := executionsOf(h)
	if n := c.Calls(); len(executions) < 2 || len(countDetaches(h)) > 0 || n["long"] != 1 || n["after"] != 1 || n["last"] != 1 {
		t.Errorf("%d executions, asked to detach: %v, calls %v", len(executions), countDetaches(h), n)
	}
	for i, execution := range executions[:2] {
		workertest.Replay(t, fmt.Sprintf("continued-quiet-%d", i), quietLimits, h.History(execution))
	}
}

// TestLongDeadNodeHarmsNoOtherAttempt checks that an attempt on a dead node that may be silent for long does not affect
// other attempts and lets new ones start. The next round asks only its own node.
func TestLongDeadNodeHarmsNoOtherAttempt(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	limits := detachLimits()
	limits.LastHistoryEvents, limits.DetachedLease = limits.HardHistoryEvents+8*100, time.Minute
	y := workertest.SharedWithin(t, limits)
	c := y.Nodes(t, workertest.Script{"one": {{Block: true}}, "two": {{Block: true}}, "far": {{Block: true}}, "t05": {{Block: true}}})
	c.Start("n")
	l := c.StartBehindLink("far")
	def := chainBeside(25, map[string]*v1.TaskDefinition{"one": workertest.ShellTask(), "two": workertest.ShellTask(), "far": workertest.ShellTask()})
	for _, task := range def.GetTasks() {
		task.Constraints = &v1.Constraints{TargetNode: c.Name("n")}
	}
	def.Tasks["far"].Constraints.TargetNode, def.Tasks["far"].HeartbeatTimeout = c.Name("far"), "10m"
	h := c.Submit(c.InputOf(def))
	for _, task := range []string{"one", "two", "far", "t05"} {
		c.AwaitRunning(task)
	}
	l.Cut()
	c.Fake.Release("t05")
	h.AwaitTask("t24", func(x *v1.Task) bool { return x.GetState() == "completed" })
	asked := countDetaches(h)
	near, far := asked[names.NodeQueue(c.Name("n"), names.ControlLane)], asked[names.NodeQueue(c.Name("far"), names.ControlLane)]
	if len(executionsOf(h)) != 1 || near < 1 || far <= near {
		t.Errorf("%d executions, asked to detach: %v", len(executionsOf(h)), asked)
	}
	l.Mend()
	for _, task := range []string{"one", "two", "far"} {
		c.Fake.Release(task)
	}
	run := h.Wait()
	for _, task := range []string{"one", "two", "far"} {
		workertest.CheckRun(t, run, "completed", map[string]string{task: "completed"})
		if n, attempt := c.Calls()[task], run.GetTasks()[task].GetAttempt(); n != 1 || attempt != 0 {
			t.Errorf("%s ran %d times, attempt %d", task, n, attempt)
		}
	}
	workertest.Replay(t, "detach-dead-node", limits, h.History(""))
}

// TestLongNothingIsAdmittedAtTheHardHistoryLimit checks that nothing is admitted at the hard limit, and that the run
// asks an unreachable node again until its attempt can be detached.
func TestLongNothingIsAdmittedAtTheHardHistoryLimit(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	limits := detachLimits()
	limits.LastHistoryEvents, limits.DetachedLease = limits.HardHistoryEvents, 12*time.Second
	y := workertest.SharedWithin(t, limits)
	c := y.Nodes(t, workertest.Script{"near": {{Block: true}}, "far": {{Block: true}}, "t05": {{Block: true}}})
	c.Start("n")
	l := c.StartBehindLink("far")
	def := chainBeside(14, map[string]*v1.TaskDefinition{"near": workertest.ShellTask(), "far": workertest.ShellTask()})
	for _, task := range def.GetTasks() {
		task.Constraints = &v1.Constraints{TargetNode: c.Name("n")}
	}
	def.Tasks["far"].Constraints.TargetNode, def.Tasks["far"].HeartbeatTimeout = c.Name("far"), "10m"
	h := c.Submit(c.InputOf(def))
	for _, task := range []string{"near", "far", "t05"} {
		c.AwaitRunning(task)
	}
	l.Cut()
	c.Fake.Release("t05")
	queue := names.NodeQueue(c.Name("far"), names.ControlLane)
	workertest.Eventually(t, "its node is asked again", func() bool { return countDetaches(h)[queue] >= 2 })
	if last := h.Status(&historyv1.StatusRequest{}).GetRun().GetTasks()["t13"]; last.GetState() != "pending" || len(executionsOf(h)) != 1 {
		t.Errorf("t13 is %s in execution %d", last.GetState(), len(executionsOf(h)))
	}
	l.Mend()
	h.AwaitTask("t13", func(x *v1.Task) bool { return x.GetState() == "completed" })
	c.Fake.Release("near")
	c.Fake.Release("far")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"near": "completed", "far": "completed"})
	for _, task := range []string{"near", "far"} {
		if n, attempt := c.Calls()[task], run.GetTasks()[task].GetAttempt(); n != 1 || attempt != 0 {
			t.Errorf("%s ran %d times, attempt %d", task, n, attempt)
		}
	}
	if n := len(executionsOf(h)); n < 2 {
		t.Errorf("%d executions", n)
	}
}

// TestLongChildThatIsSlowToStopDelaysNothingElse checks that a child run that is slow to stop, which the next execution
// could not reattach, delays nothing else in its parent.
func TestLongChildThatIsSlowToStopDelaysNothingElse(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	limits := detachLimits()
	limits.DetachedLease = 12 * time.Second
	y := workertest.SharedWithin(t, limits)
	c := y.Nodes(t, workertest.Script{"long": {{Block: true}}, "slow": {{Block: true}}, "t02": {{Block: true}}})
	c.Start("n")
	l := c.StartBehindLink("far")
	inner := fmt.Sprintf(`{name: inner, tasks: {slow: {type: shell, spec: {command: x}, heartbeatTimeout: 10m, resources: {cores: 0}, constraints: {targetNode: %s}}}}`, c.Name("far"))
	def, err := definition.Parse("parent.yaml", []byte(fmt.Sprintf(`{name: parent, tasks: {child: {type: run, spec: {definition: %s}}}}`, inner)))
	if err != nil {
		t.Fatal(err)
	}
	for name, task := range chainBeside(25, map[string]*v1.TaskDefinition{"long": workertest.ShellTask()}).GetTasks() {
		task.Constraints = &v1.Constraints{TargetNode: c.Name("n")}
		def.Tasks[name] = task
	}
	h := c.Submit(c.InputOf(def))
	for _, task := range []string{"long", "slow", "t02"} {
		c.AwaitRunning(task)
	}
	h.AwaitTask("child", func(x *v1.Task) bool { return x.GetState() == "running" })
	l.Cut()
	if err := sendUpdate(h, names.CancelTaskUpdate, &historyv1.TaskCommand{Task: "child"}); err != nil {
		t.Fatal(err)
	}
	c.Fake.Release("t02")
	h.AwaitTask("t24", func(x *v1.Task) bool { return x.GetState() == "completed" })
	if n, events := len(executionsOf(h)), len(h.History("")); n != 1 || events <= limits.HardHistoryEvents {
		t.Errorf("%d executions, %d events", n, events)
	}
	l.Mend()
	h.AwaitTask("child", func(x *v1.Task) bool { return x.GetState() == "cancelled" })
	c.Fake.Release("long")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"long": "completed", "child": "cancelled"})
	if n, attempt := c.Calls()["long"], run.GetTasks()["long"].GetAttempt(); n != 1 || attempt != 0 {
		t.Errorf("long ran %d times, attempt %d", n, attempt)
	}
}

// TestRunningTaskDoesNotDelayContinueAsNew checks that a long task runs once while its run continues as new several
// times, and that its results are complete.
func TestRunningTaskDoesNotDelayContinueAsNew(t *testing.T) {
	t.Parallel()
	y := workertest.SharedWithin(t, detachLimits())
	c := y.Nodes(t, workertest.Script{"long": {{Stdout: "begun\n", Block: true, Output: `{"n": 7}`}}})
	c.Start("n")
	h := c.Submit(c.InputOf(chainBeside(25, map[string]*v1.TaskDefinition{"long": workertest.ShellTask()})))
	h.AwaitTask("t24", func(x *v1.Task) bool { return x.GetState() == "completed" })
	long := h.AwaitTask("long", func(x *v1.Task) bool { return x.GetState() == "running" })
	if long.GetStartedAt() == nil || long.GetNode() != c.Name("n") {
		t.Errorf("long is %v", long)
	}
	if n := len(executionsOf(h)); n < 3 {
		t.Errorf("%d executions", n)
	}
	c.Fake.Release("long")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"long": "completed"})
	long = run.GetTasks()["long"]
	if c.Calls()["long"] != 1 || long.GetAttempt() != 0 || long.GetResult().GetStdout() != "begun\n" || long.GetResult().GetOutput().GetFields()["n"].GetNumberValue() != 7 {
		t.Errorf("it ran %d times and left %v", c.Calls()["long"], long)
	}
	attempts, err := logs.Attempts(t.Context(), c.Store, h.Home(), "long")
	if err != nil || len(attempts) != 1 {
		t.Fatalf("logs of %d attempts: %v", len(attempts), err)
	}
	entries, _, ended, err := logs.Read(t.Context(), c.Store, attempts[0], 0)
	if err != nil || !ended || len(entries) == 0 || string(entries[0].GetData()) != "begun\n" {
		t.Errorf("the log is %v, ended %v, %v", entries, ended, err)
	}
	executions := executionsOf(h)
	for name, i := range map[string]int{"first": 0, "second": 1, "last": len(executions) - 1} {
		workertest.Replay(t, "continued-detached-"+name, detachLimits(), h.History(executions[i]))
	}
}
