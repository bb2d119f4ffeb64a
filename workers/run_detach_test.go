package workers

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor/fake"
	"switchyard/activities/logs"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// detachLimits returns limits that make a small run detach its attempts repeatedly.
func detachLimits() limits.Run {
	return limits.Run{HardHistoryEvents: 60, DetachWait: 10 * time.Millisecond}
}

// within returns a context that ends when a test has waited too long.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// chainBeside returns a chain of short tasks with the given long ones beside it.
func chainBeside(n int, beside map[string]*v1.TaskDefinition) *v1.Definition {
	def := &v1.Definition{Name: "detach", Tasks: beside}
	for i := range n {
		name := fmt.Sprintf("t%02d", i)
		def.Tasks[name] = shellTask()
		if i > 0 {
			def.Tasks[name] = shellTask(fmt.Sprintf("t%02d", i-1))
		}
	}
	return def
}

// detaches returns how often each node was asked to detach attempts of the run.
func (h *handle) detaches() map[string]int {
	asked := map[string]int{}
	for _, execution := range h.executions() {
		for _, e := range h.history(execution) {
			if s := scheduled(e, names.DetachActivity); s != nil {
				asked[s.GetTaskQueue().GetName()]++
			}
		}
	}
	return asked
}

// TestContinueAsNewWhenQuiet checks that a run beyond the soft limit still starts tasks beside a long one, detaches
// nothing, and continues as new as soon as nothing is in flight.
func TestContinueAsNewWhenQuiet(t *testing.T) {
	t.Parallel()
	limits := limits.Run{HistoryEvents: 60}
	y := own(t, ControlConfig{limits: limits})
	c := y.workers(t, script{"long": {{Block: true}}})
	c.start("n")
	h := c.submit(c.inputOf(chainBeside(25, map[string]*v1.TaskDefinition{"long": shellTask(), "after": shellTask("long"), "last": shellTask("after")})))
	h.until("t24", func(x *v1.Task) bool { return x.GetState() == "completed" })
	if n, events := len(h.executions()), len(h.history("")); n != 1 || events <= limits.HistoryEvents {
		t.Errorf("%d executions, %d events", n, events)
	}
	c.fake.Release("long")
	want(t, h.wait(), "completed", map[string]string{"long": "completed", "last": "completed"})
	executions := h.executions()
	if n := c.calls(); len(executions) < 2 || len(h.detaches()) > 0 || n["long"] != 1 || n["after"] != 1 || n["last"] != 1 {
		t.Errorf("%d executions, asked to detach: %v, calls %v", len(executions), h.detaches(), n)
	}
	for i, execution := range executions[:2] {
		replay(t, fmt.Sprintf("continued-quiet-%d", i), limits, h.history(execution))
	}
}

// TestLongDeadNodeHarmsNoOtherAttempt checks that an attempt on a dead node that may be silent for long does not affect
// other attempts and lets new ones start. The next round asks only its own node.
func TestLongDeadNodeHarmsNoOtherAttempt(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	limits := detachLimits()
	limits.LastHistoryEvents = limits.HardHistoryEvents + 8*100
	y := own(t, ControlConfig{limits: limits})
	c := y.workers(t, script{"one": {{Block: true}}, "two": {{Block: true}}, "far": {{Block: true}}, "t05": {{Block: true}}})
	c.start("n")
	l := c.distant("far")
	def := chainBeside(25, map[string]*v1.TaskDefinition{"one": shellTask(), "two": shellTask(), "far": shellTask()})
	for _, task := range def.GetTasks() {
		task.Constraints = &v1.Constraints{TargetNode: c.name("n")}
	}
	def.Tasks["far"].Constraints.TargetNode, def.Tasks["far"].HeartbeatTimeout = c.name("far"), "10m"
	h := c.submit(c.inputOf(def))
	for _, task := range []string{"one", "two", "far", "t05"} {
		c.running(task)
	}
	l.cut()
	c.fake.Release("t05")
	h.until("t24", func(x *v1.Task) bool { return x.GetState() == "completed" })
	asked := h.detaches()
	near, far := asked[names.NodeQueue(c.name("n"), names.ControlLane)], asked[names.NodeQueue(c.name("far"), names.ControlLane)]
	if len(h.executions()) != 1 || near < 1 || far <= near {
		t.Errorf("%d executions, asked to detach: %v", len(h.executions()), asked)
	}
	l.mend()
	for _, task := range []string{"one", "two", "far"} {
		c.fake.Release(task)
	}
	run := h.wait()
	for _, task := range []string{"one", "two", "far"} {
		want(t, run, "completed", map[string]string{task: "completed"})
		if n, attempt := c.calls()[task], run.GetTasks()[task].GetAttempt(); n != 1 || attempt != 0 {
			t.Errorf("%s ran %d times, attempt %d", task, n, attempt)
		}
	}
	replay(t, "detach-dead-node", limits, h.history(""))
}

// TestLongLastHistoryBound checks that nothing is admitted at the hard limit, and that the run asks an unreachable node
// again until its attempt can be detached.
func TestLongLastHistoryBound(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	limits := detachLimits()
	limits.LastHistoryEvents, limits.DetachedLease = limits.HardHistoryEvents, 12*time.Second
	y := own(t, ControlConfig{limits: limits})
	c := y.workers(t, script{"near": {{Block: true}}, "far": {{Block: true}}, "t05": {{Block: true}}})
	c.start("n")
	l := c.distant("far")
	def := chainBeside(14, map[string]*v1.TaskDefinition{"near": shellTask(), "far": shellTask()})
	for _, task := range def.GetTasks() {
		task.Constraints = &v1.Constraints{TargetNode: c.name("n")}
	}
	def.Tasks["far"].Constraints.TargetNode, def.Tasks["far"].HeartbeatTimeout = c.name("far"), "10m"
	h := c.submit(c.inputOf(def))
	for _, task := range []string{"near", "far", "t05"} {
		c.running(task)
	}
	l.cut()
	c.fake.Release("t05")
	queue := names.NodeQueue(c.name("far"), names.ControlLane)
	eventually(t, "its node is asked again", func() bool { return h.detaches()[queue] >= 2 })
	if last := h.status(&v1.StatusRequest{}).GetRun().GetTasks()["t13"]; last.GetState() != "pending" || len(h.executions()) != 1 {
		t.Errorf("t13 is %s in execution %d", last.GetState(), len(h.executions()))
	}
	l.mend()
	h.until("t13", func(x *v1.Task) bool { return x.GetState() == "completed" })
	c.fake.Release("near")
	c.fake.Release("far")
	run := h.wait()
	want(t, run, "completed", map[string]string{"near": "completed", "far": "completed"})
	for _, task := range []string{"near", "far"} {
		if n, attempt := c.calls()[task], run.GetTasks()[task].GetAttempt(); n != 1 || attempt != 0 {
			t.Errorf("%s ran %d times, attempt %d", task, n, attempt)
		}
	}
	if n := len(h.executions()); n < 2 {
		t.Errorf("%d executions", n)
	}
}

// TestLongChildThatIsSlowToStopHoldsNothingUp checks that a child run that is slow to stop, which the next execution
// could not adopt, delays nothing else in its parent.
func TestLongChildThatIsSlowToStopHoldsNothingUp(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	limits := detachLimits()
	limits.DetachedLease = 12 * time.Second
	y := own(t, ControlConfig{limits: limits})
	c := y.workers(t, script{"long": {{Block: true}}, "slow": {{Block: true}}, "t02": {{Block: true}}})
	c.start("n")
	l := c.distant("far")
	inner := fmt.Sprintf(`{name: inner, tasks: {slow: {type: shell, spec: {command: x}, heartbeatTimeout: 10m, resources: {cores: 0}, constraints: {targetNode: %s}}}}`, c.name("far"))
	def, err := definition.Parse("parent.yaml", []byte(fmt.Sprintf(`{name: parent, tasks: {child: {type: run, spec: {definition: %s}}}}`, inner)))
	if err != nil {
		t.Fatal(err)
	}
	for name, task := range chainBeside(25, map[string]*v1.TaskDefinition{"long": shellTask()}).GetTasks() {
		task.Constraints = &v1.Constraints{TargetNode: c.name("n")}
		def.Tasks[name] = task
	}
	h := c.submit(c.inputOf(def))
	for _, task := range []string{"long", "slow", "t02"} {
		c.running(task)
	}
	h.until("child", func(x *v1.Task) bool { return x.GetState() == "running" })
	l.cut()
	if err := h.update(names.CancelTaskUpdate, &v1.TaskCommand{Task: "child"}); err != nil {
		t.Fatal(err)
	}
	c.fake.Release("t02")
	h.until("t24", func(x *v1.Task) bool { return x.GetState() == "completed" })
	if n, events := len(h.executions()), len(h.history("")); n != 1 || events <= limits.HardHistoryEvents {
		t.Errorf("%d executions, %d events", n, events)
	}
	l.mend()
	h.until("child", func(x *v1.Task) bool { return x.GetState() == "cancelled" })
	c.fake.Release("long")
	run := h.wait()
	want(t, run, "completed", map[string]string{"long": "completed", "child": "cancelled"})
	if n, attempt := c.calls()["long"], run.GetTasks()["long"].GetAttempt(); n != 1 || attempt != 0 {
		t.Errorf("long ran %d times, attempt %d", n, attempt)
	}
}

// TestRunningTaskHoldsNothingUp checks that a long task runs once while its run continues as new several times, and
// that its results are complete.
func TestRunningTaskHoldsNothingUp(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: detachLimits()})
	c := y.workers(t, script{"long": {{Stdout: "begun\n", Block: true, Output: `{"n": 7}`}}})
	c.start("n")
	h := c.submit(c.inputOf(chainBeside(25, map[string]*v1.TaskDefinition{"long": shellTask()})))
	h.until("t24", func(x *v1.Task) bool { return x.GetState() == "completed" })
	long := h.until("long", func(x *v1.Task) bool { return x.GetState() == "running" })
	if long.GetStartedAt() == nil || long.GetNode() != c.name("n") {
		t.Errorf("long is %v", long)
	}
	if n := len(h.executions()); n < 3 {
		t.Errorf("%d executions", n)
	}
	c.fake.Release("long")
	run := h.wait()
	want(t, run, "completed", map[string]string{"long": "completed"})
	long = run.GetTasks()["long"]
	if c.calls()["long"] != 1 || long.GetAttempt() != 0 || long.GetResult().GetStdout() != "begun\n" || long.GetResult().GetOutput().GetFields()["n"].GetNumberValue() != 7 {
		t.Errorf("it ran %d times and left %v", c.calls()["long"], long)
	}
	attempts, err := logs.Attempts(t.Context(), c.store, h.home(), "long")
	if err != nil || len(attempts) != 1 {
		t.Fatalf("logs of %d attempts: %v", len(attempts), err)
	}
	entries, _, ended, err := logs.Read(t.Context(), c.store, attempts[0], 0)
	if err != nil || !ended || len(entries) == 0 || string(entries[0].GetData()) != "begun\n" {
		t.Errorf("the log is %v, ended %v, %v", entries, ended, err)
	}
	executions := h.executions()
	for name, i := range map[string]int{"first": 0, "second": 1, "last": len(executions) - 1} {
		replay(t, "continued-detached-"+name, detachLimits(), h.history(executions[i]))
	}
}

// TestBatchIsReattached checks that a detached batch continues and that its instances are still reported individually.
func TestBatchIsReattached(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: detachLimits()})
	c := y.workers(t, script{"each": {{}, {Block: true}, {}}})
	c.start("n")
	each := shellTask()
	each.Parallel, each.Batch = structpb.NewNumberValue(3), structpb.NewNumberValue(3)
	h := c.submit(c.inputOf(chainBeside(25, map[string]*v1.TaskDefinition{"each": each})))
	h.until("t24", func(x *v1.Task) bool { return x.GetState() == "completed" })
	eventually(t, "the batch is reattached", h.spawned)
	c.fake.Release("each")
	run := h.wait()
	want(t, run, "completed", map[string]string{"each": "completed"})
	if n := len(h.executions()); c.calls()["each"] != 3 || n < 3 || run.GetTasks()["each"].GetCounts()["completed"] != 3 {
		t.Errorf("%d executions of the run, %d of the task: %v", n, c.calls()["each"], run.GetTasks()["each"])
	}
}

// TestLimitsCountDetachedAttempts checks that a detached attempt keeps its lock and still counts towards limits, and
// that waiting tasks start when it has ended.
func TestLimitsCountDetachedAttempts(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: detachLimits()})
	c := y.workers(t, script{"first": {{Block: true}}})
	c.start("n")
	mutex := names.NewRunID("lock")
	first, second := shellTask(), shellTask("t10")
	first.Mutex, second.Mutex = mutex, mutex
	h := c.submit(c.inputOf(chainBeside(25, map[string]*v1.TaskDefinition{"first": first, "second": second})))
	h.until("t24", func(x *v1.Task) bool { return x.GetState() == "completed" })
	if n, s := c.calls()["second"], h.status(&v1.StatusRequest{}).GetRun().GetTasks()["second"].GetState(); n != 0 || s != "queued" {
		t.Errorf("the second ran %d times, is %s", n, s)
	}
	if n := len(h.executions()); n < 3 {
		t.Errorf("%d executions", n)
	}
	c.fake.Release("first")
	want(t, h.wait(), "completed", map[string]string{"first": "completed", "second": "completed"})
}

// TestCancelOfDetachedAttempts checks that cancelling a run stops its detached attempts whenever the cancel arrives.
func TestCancelOfDetachedAttempts(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: detachLimits()})
	c := y.workers(t, script{"long": {{Block: true}}})
	c.start("n")
	for round := range 4 {
		h := c.submit(c.inputOf(chainBeside(40, map[string]*v1.TaskDefinition{"long": shellTask()})))
		eventually(t, "another execution", func() bool {
			d, err := c.conn.DescribeWorkflowExecution(t.Context(), h.id, "")
			return err == nil && d.GetWorkflowExecutionInfo().GetFirstRunId() != d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
		})
		if round%2 == 0 {
			h.signal(nil)
			want(t, h.wait(), "cancelled", map[string]string{"long": "cancelled"})
		} else {
			if err := h.update(names.CancelTaskUpdate, &v1.TaskCommand{Task: "long"}); err != nil {
				t.Fatal(err)
			}
			want(t, h.wait(), "completed", map[string]string{"long": "cancelled", "t39": "completed"})
		}
		if err := c.fake.Await(within(t), func(_ []fake.Call, running map[string]int) bool { return running["long"] == 0 }); err != nil {
			t.Fatal(err)
		}
		if n := c.calls()["long"]; n != round+1 {
			t.Errorf("it ran %d times in %d runs", n, round+1)
		}
	}
}

// TestLongNodeIsCutOffBeforeDetach checks that a run whose hard limit moves in small steps continues as new once the
// attempts of an unreachable node are known to be lost. An attempt on that node has ended before it is repeated, and
// attempts on other nodes run once.
func TestLongNodeIsCutOffBeforeDetach(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	limits := detachLimits()
	limits.DetachedLease, limits.LastHistoryEvents = 18*time.Second, limits.HardHistoryEvents+8*30
	y := own(t, ControlConfig{limits: limits})
	c := y.workers(t, script{"near": {{Block: true}}, "far": {{Block: true, IgnoreTerm: true}}, "t05": {{Block: true}}})
	c.start("n")
	l := c.distant("far")
	near, far := shellTask(), shellTask()
	near.Constraints = &v1.Constraints{TargetNode: c.name("n")}
	far.Constraints = &v1.Constraints{AllowedNodes: []string{c.name("far"), c.name("m")}}
	far.Retry = &v1.RetryPolicy{BackoffMs: new(int32)}
	def := chainBeside(25, map[string]*v1.TaskDefinition{"near": near, "far": far})
	for name, task := range def.GetTasks() {
		if name != "far" {
			task.Constraints = &v1.Constraints{TargetNode: c.name("n")}
		}
	}
	in := c.inputOf(def)
	in.Options = &v1.RunOptions{HeartbeatTimeout: durationpb.New(heartbeat)}
	h := c.submit(in)
	c.running("near")
	c.running("far")
	c.running("t05")
	eventually(t, "the server knows that they run", h.spawned)
	c.start("m")
	l.cut()
	c.fake.Release("t05")
	both := false
	err := c.fake.Await(within(t), func(calls []fake.Call, running map[string]int) bool {
		n := 0
		for _, call := range calls {
			if call.Task == "far" {
				n++
				both = both || n > 1 && running["far"] > 1
			}
		}
		return n > 1 && running["far"] == 1
	})
	if err != nil || both {
		t.Fatalf("ran on two nodes: %v, %v", both, err)
	}
	l.mend()
	h.until("t24", func(x *v1.Task) bool { return x.GetState() == "completed" })
	c.fake.Release("near")
	c.fake.Release("far")
	run := h.wait()
	want(t, run, "completed", map[string]string{"near": "completed", "far": "completed"})
	if c.calls()["near"] != 1 || c.calls()["far"] != 2 || len(h.executions()) < 2 {
		t.Errorf("near ran %d times, far %d, in %d executions", c.calls()["near"], c.calls()["far"], len(h.executions()))
	}
}

// TestNodeIsCutOffWhileDetached checks that a detached attempt on a node that is then cut off ends before the task
// starts elsewhere.
func TestNodeIsCutOffWhileDetached(t *testing.T) {
	t.Parallel()
	limits := detachLimits()
	limits.DetachedLease = 18 * time.Second
	y := own(t, ControlConfig{limits: limits})
	c := y.workers(t, script{"long": {{Block: true, IgnoreTerm: true}}, "holds": {{Block: true}}, "t05": {{Block: true}}})
	c.start("n")
	holds, distant := c.distant("holds"), c.distant("long")
	def := chainBeside(25, map[string]*v1.TaskDefinition{"holds": shellTask(), "long": shellTask()})
	zero := int32(0)
	for name, task := range def.GetTasks() {
		task.Constraints = &v1.Constraints{TargetNode: c.name("n")}
		task.Retry = &v1.RetryPolicy{BackoffMs: &zero}
		if name == "holds" || name == "long" {
			task.Constraints = &v1.Constraints{AllowedNodes: []string{c.name(name), c.name("m")}}
		}
	}
	in := c.inputOf(def)
	in.Options = &v1.RunOptions{HeartbeatTimeout: durationpb.New(heartbeat)}
	h := c.submit(in)
	for _, task := range []string{"long", "holds", "t05"} {
		c.running(task)
	}
	eventually(t, "the server knows that they run", h.spawned)
	c.start("m")
	holds.cut()
	c.fake.Release("t05")
	eventually(t, "it is detached", func() bool {
		for _, a := range h.described().GetPendingActivities() {
			if strings.HasPrefix(a.GetActivityId(), "long#") {
				return false
			}
		}
		return true
	})
	distant.cut()
	both := false
	err := c.fake.Await(within(t), func(calls []fake.Call, running map[string]int) bool {
		n := 0
		for _, call := range calls {
			if call.Task == "long" {
				n++
			}
		}
		both = both || running["long"] > 1
		return n > 1 && running["long"] == 1
	})
	if err != nil || both {
		t.Fatalf("ran on two nodes: %v, %v", both, err)
	}
	distant.mend()
	holds.mend()
	c.fake.Release("long")
	c.fake.Release("holds")
	run := h.wait()
	want(t, run, "completed", map[string]string{"long": "completed", "holds": "completed"})
	if n := c.calls(); n["long"] != 2 || n["holds"] != 2 {
		t.Errorf("they ran %d and %d times", n["long"], n["holds"])
	}
}
