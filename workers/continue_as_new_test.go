package workers

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/executor/fake"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/limits"
)

// shortHistory returns limits that take a small run through many executions, even though it is never quiet. Temporal
// puts at least a second between two.
func shortHistory(events int) limits.Run {
	return limits.Run{HistoryEvents: events, HardHistoryEvents: events}
}

// ladder returns a run with nine tasks of various kinds per rung, and the script of its tasks.
func ladder(rungs int) (*v1.Definition, script) {
	def := &v1.Definition{Name: "ladder", Context: structOf(map[string]any{"first": true}), Tasks: map[string]*v1.TaskDefinition{}}
	s := script{}
	two, one := int32(2), int32(1)
	for i := range rungs {
		name := func(kind string) string { return fmt.Sprintf("%s%02d", kind, i) }
		add := func(kind string, task *v1.TaskDefinition, steps ...fake.Step) {
			task.Retry = &v1.RetryPolicy{MaxRetries: &two, BackoffMs: &one}
			def.Tasks[name(kind)], s[name(kind)] = task, steps
		}
		root := shellTask()
		if i > 0 {
			root = shellTask(fmt.Sprintf("root%02d", i-1))
		}
		add("root", root, fake.Step{Output: fmt.Sprintf(`{"n": %d}`, i), ContextUpdate: fmt.Sprintf("key%d=%d", i%5, i)})
		add("flaky", shellTask(name("root")), fake.Exit(1), fake.Step{})
		add("dead", shellTask(name("root")), fake.Step{Stderr: "broken\n", Result: fake.Exit(1).Result})
		add("skipped", shellTask(name("dead")))
		mend := shellTask(name("dead"))
		mend.OnFailure = "run"
		add("mend", mend)
		yes := shellTask(name("root"))
		yes.Condition = fmt.Sprintf("parent.%s.output.n == %d.0", name("root"), i)
		add("yes", yes, fake.Step{Output: `{"big": "` + fmt.Sprintf("%05000d", i) + `"}`})
		no := shellTask(name("yes"))
		no.Condition = fmt.Sprintf("parent.%s.output.big == ''", name("yes"))
		add("no", no)
		add("bare", shellTask(name("yes"), name("mend")))
		excused := shellTask(name("root"))
		excused.ContinueOnError = true
		add("excused", excused, fake.Exit(9))
		add("last", shellTask(name("excused"), name("flaky")))
	}
	return def, s
}

// TestContinueAsNew checks that a long run goes through many executions and ends as it would in one.
func TestContinueAsNew(t *testing.T) { continueAsNew(t, 4, 40) }

func TestLongContinueAsNew(t *testing.T) {
	testneeds.Long(t)
	continueAsNew(t, 20, 300)
}

func continueAsNew(t *testing.T, rungs, events int) {
	t.Parallel()
	def, s := ladder(rungs)
	whole := func(y *cluster) (*v1.Run, *handle) {
		c := y.workers(t, s)
		c.start("n")
		h := c.submit(c.inputOf(def))
		run := h.wait()
		if n := len(c.fake.Calls()); n != rungs*(1+2+3+1+1+1+3+1) {
			t.Errorf("%d executions", n)
		}
		return run, h
	}
	plain, one := whole(shared(t))
	split, h := whole(own(t, ControlConfig{limits: shortHistory(events)}))
	if n := len(h.executions()); n < 3 { // the number depends on how much happens at once
		t.Errorf("the run took %d executions, want several", n)
	}
	a, b := one.comparable(plain), h.comparable(split)
	for name := range a.GetTasks() {
		if x, y := a.GetTasks()[name], b.GetTasks()[name]; !proto.Equal(x, y) {
			t.Errorf("task %s\nin one execution: %v\nin several:       %v", name, x, y)
		}
	}
	for name := range a.GetTasks() {
		if x, y := one.lifecycle(name, 1), h.lifecycle(name, 1); x != y {
			t.Errorf("events of task %s\nin one execution: %s\nin several:       %s", name, x, y)
		}
	}
	if x, y := one.lifecycle("", 1), h.lifecycle("", 1); x != y || x != "submitted failed" {
		t.Errorf("events of the run: %s; %s", x, y)
	}
	if a.Tasks, b.Tasks = nil, nil; !proto.Equal(a, b) {
		t.Errorf("the run\nin one execution: %v\nin several:       %v", a, b)
	}
	last := fmt.Sprintf("%02d", rungs-1)
	want(t, split, "failed", map[string]string{"dead00": "dead_letter exit_code", "excused" + last: "dead_letter", "last" + last: "completed"})
}

// TestLargeDefinitionContinuesByReference checks that a large definition is stored once instead of being sent with each
// execution.
func TestLargeDefinitionContinuesByReference(t *testing.T) {
	t.Parallel()
	def := &v1.Definition{Name: "large", Tasks: map[string]*v1.TaskDefinition{"t0": shellTask()}}
	for i := range 30 {
		def.Tasks[fmt.Sprintf("t%d", i+1)] = shellTask(fmt.Sprintf("t%d", i))
	}
	def.Tasks["t0"].Env = map[string]string{"TEXT": strings.Repeat("x", 200<<10)}
	c := own(t, ControlConfig{limits: shortHistory(100)}).workers(t, script{})
	c.start("n")
	h := c.submit(c.inputOf(def))
	want(t, h.wait(), "completed", map[string]string{"t0": "completed", "t30": "completed"})
	executions := h.executions()
	if len(executions) < 3 {
		t.Fatalf("the run took %d executions, want several", len(executions))
	}
	for _, id := range executions[:len(executions)-1] { // from the newest to the oldest
		if size := proto.Size(h.history(id)[0].GetWorkflowExecutionStartedEventAttributes().GetInput()); size > 64<<10 {
			t.Errorf("an execution was started with %d bytes", size)
		}
	}
}

// comparable returns a run without the fields that differ between executions, and with the results that are in the
// store.
func (h *handle) comparable(run *v1.Run) *v1.Run {
	h.t.Helper()
	run = proto.CloneOf(run)
	for name, task := range run.GetTasks() {
		if task.GetCompletedAt() == nil {
			h.t.Errorf("task %s has no end", name)
		}
		if key := h.records[name]; key != "" {
			var record v1.ExecuteResponse
			if err := h.store.GetMessage(h.t.Context(), key, &record); err != nil {
				h.t.Fatal(err)
			}
			task.Result = record.GetResult()
		}
		task.CreatedAt, task.QueuedAt, task.DeadLetteredAt = nil, nil, nil
		task.AssignedAt, task.StartedAt, task.CompletedAt, task.ScheduledAfter = nil, nil, nil, nil
		task.Node = ""
		for _, attempt := range task.GetAttempts() {
			attempt.Node, attempt.AssignedAt, attempt.StartedAt, attempt.CompletedAt = "", nil, nil, nil
		}
	}
	run.Id, run.Error, run.CreatedAt, run.CompletedAt = "", "", nil, nil
	return run
}

// executions returns Temporal's IDs of the executions of a run.
func (h *handle) executions() []string {
	var ids []string
	id := ""
	for {
		first := h.history(id)[0].GetWorkflowExecutionStartedEventAttributes()
		ids = append(ids, first.GetOriginalExecutionRunId())
		if id = first.GetContinuedExecutionRunId(); id == "" {
			return ids
		}
	}
}

// TestCancelDuringContinueAsNew checks that neither a cancel nor a node's result is lost while a run continues as new.
func TestCancelDuringContinueAsNew(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: shortHistory(150)})
	def := &v1.Definition{Name: "endless", Tasks: map[string]*v1.TaskDefinition{"t000": shellTask()}}
	for i := range 300 {
		def.Tasks[fmt.Sprintf("t%03d", i+1)] = shellTask(fmt.Sprintf("t%03d", i))
	}
	c := y.workers(t, nil)
	c.start("n")
	for range 3 {
		h := c.submit(c.inputOf(def))
		eventually(t, "the second execution", func() bool {
			d, err := c.conn.DescribeWorkflowExecution(t.Context(), h.id, "")
			return err == nil && d.GetWorkflowExecutionInfo().GetFirstRunId() != d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
		})
		// The query works in every execution.
		if res := h.status(&v1.StatusRequest{}); res.GetTaskCount() != 301 || len(res.GetRun().GetTasks()) != 301 {
			t.Errorf("%d of %d tasks", len(res.GetRun().GetTasks()), res.GetTaskCount())
		}
		h.signal(nil)
		want(t, h.wait(), "cancelled", map[string]string{"t000": "completed", "t300": "cancelled"})
	}
}

// TestWaitingAcrossContinueAsNew checks that tasks that wait for a node while their run continues as new still get
// nodes, and that other tasks keep theirs.
func TestWaitingAcrossContinueAsNew(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: shortHistory(150)})
	def := &v1.Definition{Name: "wide", Tasks: map[string]*v1.TaskDefinition{}}
	for i := range 150 {
		def.Tasks[fmt.Sprintf("t%03d", i)] = shellTask()
	}
	c := y.workers(t, nil)
	c.start("n", func(cfg *NodeConfig) { cfg.MaxParallel = 3 })
	h := c.submit(c.inputOf(def))
	want(t, h.wait(), "completed", nil)
	if len(h.executions()) < 3 || len(c.fake.Calls()) != 150 {
		t.Errorf("%d executions of the run, %d of its tasks", len(h.executions()), len(c.fake.Calls()))
	}
}

// TestNewsReachTheNewExecution checks that a new node is announced to the current execution of a run with a waiting
// task, not to a closed execution.
func TestNewsReachTheNewExecution(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: shortHistory(90)})
	def := &v1.Definition{Name: "news", Tasks: map[string]*v1.TaskDefinition{"gate": shellTask("t18"), "late": shellTask()}}
	def.Tasks["late"].Constraints = &v1.Constraints{NodeLabels: []string{"later"}}
	for i := range 19 {
		def.Tasks[fmt.Sprintf("t%02d", i)] = shellTask()
		if i > 0 {
			def.Tasks[fmt.Sprintf("t%02d", i)].DependsOn = []string{fmt.Sprintf("t%02d", i-1)}
		}
	}
	c := y.workers(t, script{"gate": {{Block: true}}})
	c.start("n")
	runs := make([]*handle, 3)
	for i := range runs {
		runs[i] = c.submit(c.inputOf(def))
	}
	for _, h := range runs {
		h.until("gate", func(task *v1.Task) bool { return task.GetState() == "assigned" })
		if n := len(h.executions()); n < 2 {
			t.Fatalf("%d executions", n)
		}
	}
	c.start("m", labels("later"))
	for _, h := range runs {
		h.until("late", func(task *v1.Task) bool { return task.GetState() == "completed" })
	}
	c.fake.Release("gate")
	for _, h := range runs {
		want(t, h.wait(), "completed", nil)
	}
}
