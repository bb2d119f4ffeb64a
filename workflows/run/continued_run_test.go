package run_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/executor/fake"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
)

// ladder returns a run with nine tasks of various kinds per rung, and the script of its tasks.
func ladder(rungs int) (*v1.Definition, workertest.Script) {
	def := &v1.Definition{Name: "ladder", Context: workertest.StructOf(map[string]any{"first": true}), Tasks: map[string]*v1.TaskDefinition{}}
	s := workertest.Script{}
	two, one := int32(2), int32(1)
	for i := range rungs {
		name := func(kind string) string { return fmt.Sprintf("%s%02d", kind, i) }
		add := func(kind string, task *v1.TaskDefinition, steps ...fake.Step) {
			task.Retry = &v1.RetryPolicy{MaxRetries: &two, BackoffMs: &one}
			def.Tasks[name(kind)], s[name(kind)] = task, steps
		}
		root := workertest.ShellTask()
		if i > 0 {
			root = workertest.ShellTask(fmt.Sprintf("root%02d", i-1))
		}
		add("root", root, fake.Step{Output: fmt.Sprintf(`{"n": %d}`, i), ContextUpdate: fmt.Sprintf("key%d=%d", i%5, i)})
		add("flaky", workertest.ShellTask(name("root")), fake.Exit(1), fake.Step{})
		add("dead", workertest.ShellTask(name("root")), fake.Step{Stderr: "broken\n", Result: fake.Exit(1).Result})
		add("skipped", workertest.ShellTask(name("dead")))
		mend := workertest.ShellTask(name("dead"))
		mend.OnFailure = "run"
		add("mend", mend)
		yes := workertest.ShellTask(name("root"))
		yes.Condition = fmt.Sprintf("parent.%s.output.n == %d.0", name("root"), i)
		add("yes", yes, fake.Step{Output: `{"big": "` + fmt.Sprintf("%05000d", i) + `"}`})
		no := workertest.ShellTask(name("yes"))
		no.Condition = fmt.Sprintf("parent.%s.output.big == ''", name("yes"))
		add("no", no)
		add("bare", workertest.ShellTask(name("yes"), name("mend")))
		excused := workertest.ShellTask(name("root"))
		excused.ContinueOnError = true
		add("excused", excused, fake.Exit(9))
		add("last", workertest.ShellTask(name("excused"), name("flaky")))
	}
	return def, s
}

// TestRunOfManyExecutionsEndsAsInOne checks that a long run goes through many executions and ends as it would in one.
func TestRunOfManyExecutionsEndsAsInOne(t *testing.T) {
	t.Parallel()
	const rungs = 3
	def, s := ladder(rungs)
	whole := func(y *workertest.Cluster) (*v1.Run, *workertest.Handle) {
		c := y.Nodes(t, s)
		c.Start("n")
		h := c.Submit(c.InputOf(def))
		run := h.Wait()
		if n := len(c.Fake.Calls()); n != rungs*(1+2+3+1+1+1+3+1) {
			t.Errorf("%d executions", n)
		}
		return run, h
	}
	plain, one := whole(workertest.Shared(t))
	split, h := whole(workertest.SharedWithin(t, shortHistory))
	if n := len(executionsOf(h)); n < 2 { // the number depends on how much happens at once
		t.Errorf("the run took %d executions, want several", n)
	}
	a, b := comparableRun(one, plain), comparableRun(h, split)
	for name := range a.GetTasks() {
		if x, y := a.GetTasks()[name], b.GetTasks()[name]; !proto.Equal(x, y) {
			t.Errorf("task %s\nin one execution: %v\nin several:       %v", name, x, y)
		}
	}
	for name := range a.GetTasks() {
		if x, y := lifecycleOf(one, name, 1), lifecycleOf(h, name, 1); x != y {
			t.Errorf("events of task %s\nin one execution: %s\nin several:       %s", name, x, y)
		}
	}
	if x, y := lifecycleOf(one, "", 1), lifecycleOf(h, "", 1); x != y || x != "submitted failed" {
		t.Errorf("events of the run: %s; %s", x, y)
	}
	if a.Tasks, b.Tasks = nil, nil; !proto.Equal(a, b) {
		t.Errorf("the run\nin one execution: %v\nin several:       %v", a, b)
	}
	last := fmt.Sprintf("%02d", rungs-1)
	workertest.CheckRun(t, split, "failed", map[string]string{"dead00": "dead_letter exit_code", "excused" + last: "dead_letter", "last" + last: "completed"})
}

// TestLargeDefinitionContinuesByReference checks that a large definition is stored once instead of being sent with each
// execution.
func TestLargeDefinitionContinuesByReference(t *testing.T) {
	t.Parallel()
	def := chainBeside(31, map[string]*v1.TaskDefinition{})
	def.Tasks["t00"].Input = workertest.StructOf(map[string]any{"text": strings.Repeat("x", 200<<10)})
	c := workertest.SharedWithin(t, shortHistory).Nodes(t, nil)
	c.Start("n")
	h := c.Submit(c.InputOf(def))
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"t00": "completed", "t30": "completed"})
	executions := executionsOf(h)
	if len(executions) < 3 {
		t.Fatalf("the run took %d executions, want several", len(executions))
	}
	for _, id := range executions[:len(executions)-1] { // from the newest to the oldest
		if size := proto.Size(h.History(id)[0].GetWorkflowExecutionStartedEventAttributes().GetInput()); size > 64<<10 {
			t.Errorf("an execution was started with %d bytes", size)
		}
	}
}

// comparableRun returns a run without the fields that differ between executions, and with the results that are in the
// store.
func comparableRun(h *workertest.Handle, run *v1.Run) *v1.Run {
	h.T.Helper()
	run = proto.CloneOf(run)
	for name, task := range run.GetTasks() {
		if task.GetCompletedAt() == nil {
			h.T.Errorf("task %s has no end", name)
		}
		if key := h.Records[name]; key != "" {
			var record historyv1.ExecuteResponse
			if err := h.Store.GetMessage(h.T.Context(), key, &record); err != nil {
				h.T.Fatal(err)
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

// TestCancelDuringContinueAsNewIsKept checks that no cancel is lost while a run continues as new.
func TestCancelDuringContinueAsNewIsKept(t *testing.T) {
	t.Parallel()
	c := workertest.SharedWithin(t, shortHistory).Nodes(t, workertest.Script{"t59": {{Block: true}}})
	c.Start("n")
	h := c.Submit(c.InputOf(chainBeside(60, map[string]*v1.TaskDefinition{})))
	workertest.Eventually(t, "the second execution", func() bool {
		info := describeRun(h).GetWorkflowExecutionInfo()
		return info.GetFirstRunId() != info.GetExecution().GetRunId()
	})
	// The query works in every execution.
	if res := h.Status(&historyv1.StatusRequest{}); res.GetTaskCount() != 60 || len(res.GetRun().GetTasks()) != 60 {
		t.Errorf("%d of %d tasks", len(res.GetRun().GetTasks()), res.GetTaskCount())
	}
	h.Cancel(nil)
	workertest.CheckRun(t, h.Wait(), "cancelled", map[string]string{"t00": "completed", "t59": "cancelled"})
}

// TestWaitingTasksKeepTheirPlaceAcrossContinueAsNew checks that tasks that wait for a node while their run continues as
// new still get nodes, and that other tasks keep theirs.
func TestWaitingTasksKeepTheirPlaceAcrossContinueAsNew(t *testing.T) {
	t.Parallel()
	c := workertest.SharedWithin(t, shortHistory).Nodes(t, nil)
	c.Start("n", func(cfg *workers.NodeConfig) { cfg.MaxParallel = 3 })
	def := &v1.Definition{Name: "wide", Tasks: map[string]*v1.TaskDefinition{}}
	for i := range 80 {
		def.Tasks[fmt.Sprintf("t%03d", i)] = workertest.ShellTask()
	}
	h := c.Submit(c.InputOf(def))
	workertest.CheckRun(t, h.Wait(), "completed", nil)
	if len(executionsOf(h)) < 3 || len(c.Fake.Calls()) != 80 {
		t.Errorf("%d executions of the run, %d of its tasks", len(executionsOf(h)), len(c.Fake.Calls()))
	}
}
