package run_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchyard/activities/executor/fake"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// uniqueLock returns the name of a lock that only the calling test uses.
func uniqueLock() string { return strings.ToLower(names.NewRunID("l")) }

// TestTaskNamesTheHolderOfItsLock checks that a task names the holder of the lock that it waits for, and stops waiting
// when it is held, or when the holder has ended.
func TestTaskNamesTheHolderOfItsLock(t *testing.T) {
	t.Parallel()
	y := workertest.Shared(t)
	c := y.Nodes(t, workertest.Script{"holds": {{Block: true}}})
	c.Start("n")
	lock := uniqueLock()
	holder := c.Submit(c.Input(fmt.Sprintf(`{name: holder, tasks: {holds: {type: shell, spec: {command: x}, mutex: %s}}}`, lock)))
	c.AwaitRunning("holds")
	document := fmt.Sprintf(`{name: waiter, tasks: {wants: {type: shell, spec: {command: x}, mutex: %s}}}`, lock)
	first, second := c.Submit(c.Input(document)), c.Submit(c.Input(document))
	for _, h := range []*workertest.Handle{first, second} {
		h.AwaitTask("wants", func(task *v1.Task) bool {
			return task.GetState() == "queued" && task.GetError() == "waits for the lock "+lock+", held by holds of "+holder.ID
		})
	}
	mustUpdate(first, names.HoldUpdate, "wants")
	terminate(holder)
	workertest.CheckRun(t, second.Wait(), "completed", nil)
	mustUpdate(first, names.ReleaseUpdate, "wants")
	workertest.CheckRun(t, first.Wait(), "completed", nil)
	y.AwaitLockEnd(t, names.TaskLock(lock))
}

// TestLockNamesAreMadeFromExpressions checks that runs wait only for runs with the same lock name, in all attempts, and
// that an invalid name fails the task.
func TestLockNamesAreMadeFromExpressions(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"a": {{Block: true}}, "b": {fake.Exit(1), {}}})
	c.Start("n")
	lock := uniqueLock()
	submit := func(stage string) *workertest.Handle {
		in := c.Input(fmt.Sprintf(`{name: deploys, inputs: {stage: {}}, tasks: {
			a: {type: shell, spec: {command: x}, mutex: "%[1]s-${{ workflow.input.stage }}"},
			b: {type: shell, spec: {command: x}, dependsOn: [a], retry: {backoffMs: 1}, semaphore: {name: "%[1]s.${{ parent.a.exitCode }}", limit: 1}}}}`, lock))
		in.Input = workertest.StructOf(map[string]any{"stage": stage})
		return c.Submit(in)
	}
	first := submit("live")
	awaitStart(first)
	second, other := submit("live"), submit("test")
	text := "waits for the lock " + lock + "-live, held by a of " + first.ID
	second.AwaitTask("a", func(task *v1.Task) bool { return task.GetState() == v1.TaskQueued && task.GetError() == text })
	awaitStart(other)
	wrong := submit("Live now").Wait()
	workertest.CheckRun(t, wrong, "failed", map[string]string{"a": "failed", "b": "skipped"})
	a := wrong.GetTasks()["a"]
	if a.GetReason() != v1.ReasonExpression || a.GetAttempt() != 0 || !strings.Contains(a.GetError(), `is "`+lock+`-Live now", which is not a valid name`) {
		t.Errorf("%s", workertest.Summary(wrong))
	}
	c.Fake.Release("a")
	for _, h := range []*workertest.Handle{first, second, other} {
		workertest.CheckRun(t, h.Wait(), "completed", nil)
	}
	workertest.Replay(t, "lock-name", limits.Run{}, second.History(""))
}

func awaitStart(h *workertest.Handle) {
	h.T.Helper()
	h.AwaitTask("a", func(task *v1.Task) bool { return task.GetState() == "assigned" })
}

// TestRunsFollowTheirConcurrencyStrategy checks that a run waits for its place, or replaces the run that has it.
func TestRunsFollowTheirConcurrencyStrategy(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"a": {{Block: true}}})
	c.Start("n")
	submit := func(strategy string) *workertest.Handle {
		return c.Submit(c.Input(fmt.Sprintf(
			`{name: %[1]s, concurrency: {maxRuns: 1, strategy: %[1]s}, tasks: {a: {type: shell, spec: {command: x}}}}`, strategy)))
	}
	first := submit("replace")
	awaitStart(first)
	second := submit("replace")
	run := first.Wait()
	workertest.CheckRun(t, run, "cancelled", map[string]string{"a": "cancelled"})
	if run.GetReason() != "concurrency" || run.GetError() != "replaced by "+second.ID {
		t.Errorf("%s", workertest.Summary(run))
	}
	awaitStart(second)

	first = submit("queue")
	awaitStart(first)
	second = submit("queue")
	workertest.Eventually(t, "the second run waits for the first", func() bool {
		return slices.ContainsFunc(eventsOf(second).GetEvents(), func(e *v1.Event) bool {
			return e.GetEvent() == "queued" && e.GetTask() == "" && e.GetDetail() == "waits for "+first.ID
		})
	})
	for _, test := range []struct{ update, state, text string }{{names.PauseUpdate, "paused", ""}, {names.ResumeUpdate, "pending", "the run waits for its place"}} {
		mustSteerRun(second, test.update)
		run := second.Status(&historyv1.StatusRequest{}).GetRun()
		if run.GetState() != test.state || !strings.HasPrefix(run.GetError(), test.text) || run.GetTasks()["a"].GetState() != "pending" {
			t.Errorf("after %s: %s", test.update, workertest.Summary(run))
		}
	}
	mustUpdate(second, names.CancelTaskUpdate, "a") // before the run may start
	c.Fake.Release("a")
	workertest.CheckRun(t, first.Wait(), "completed", nil)
	workertest.CheckRun(t, second.Wait(), "cancelled", map[string]string{"a": "cancelled"})
}

// TestRunFailsAtOnceForWhatIsHeldAboveIt checks that a run does not wait for a lock, or for a run slot, that is held until the run
// has ended.
func TestRunFailsAtOnceForWhatIsHeldAboveIt(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{})
	c.Start("n")
	lock := uniqueLock()
	needs := fmt.Sprintf("type: shell, spec: {command: x}, resources: {cores: 0}, constraints: {nodeLabels: [%s]}, mutex: %s", c.Label, lock)
	run := func(tasks string) string {
		return fmt.Sprintf("type: run, retry: {backoffMs: 1}, spec: {definition: {name: inner, tasks: {t: {%s}}}}", tasks)
	}
	slot := fmt.Sprintf("type: run, spec: {definition: {name: %[1]s, concurrency: {maxRuns: 1}, tasks: {t: {%[2]s}}}}", lock, needs)
	h := c.Submit(c.Input(fmt.Sprintf(`{name: %[1]s, concurrency: {maxRuns: 1}, tasks: {
		child: {%[2]s, mutex: %[1]s},
		grandchild: {%[3]s, semaphore: {name: %[1]s, limit: 5}},
		partitions: {%[4]s, mutex: %[1]s},
		places: {%[5]s, semaphore: {name: two-%[1]s, limit: 2}},
		slot: {%[6]s},
		slots: {%[6]s, parallel: 501, concurrency: 2, maxFailures: 1}}}`,
		lock, run(needs), run(run(needs)), run(needs+", parallel: 501, concurrency: 2, maxFailures: 1"),
		run(strings.ReplaceAll(needs, "mutex: "+lock, fmt.Sprintf("semaphore: {name: two-%s, limit: 2}", lock))), slot)))
	got := h.Wait()
	workertest.CheckRun(t, got, "failed", map[string]string{
		"child": "failed deadlock", "grandchild": "failed deadlock", "partitions": "failed instances", "places": "completed",
		"slot": "failed deadlock", "slots": "failed instances",
	})
	for name, text := range map[string]string{
		"child":      "the lock " + lock + " is held by child of " + h.ID,
		"grandchild": "held by grandchild of " + h.ID,
		"partitions": "held by partitions of " + h.ID,
		"slot":       "the place of a run of " + lock + " is held by " + h.ID,
		"slots":      "held by " + h.ID,
	} {
		if task := got.GetTasks()[name]; !strings.Contains(task.GetError(), text) || task.GetAttempt() > 0 {
			t.Errorf("%s ended with attempt %d: %s", name, task.GetAttempt(), task.GetError())
		}
	}
	workertest.Replay(t, "deadlock", limits.Run{}, h.History(""))
}

// TestHistoriesOfLocksReplay checks that locks, and the runs that wait for them, replay.
func TestHistoriesOfLocksReplay(t *testing.T) {
	t.Parallel()
	// The histories are replayed with the intervals of a lock that are usual.
	c := workertest.Own(t, workers.ControlConfig{}).Nodes(t, workertest.Script{"a": {{Block: true}}})
	c.Start("n")
	lock := uniqueLock()
	document := fmt.Sprintf(`{name: %[1]s, concurrency: {maxRuns: 2}, tasks: {a: {type: shell, spec: {command: x}, mutex: %[1]s}}}`, lock)
	first := c.Submit(c.Input(document))
	c.AwaitRunning("a")
	second, third := c.Submit(c.Input(document)), c.Submit(c.Input(document))
	waits := func(h *workertest.Handle) bool {
		return strings.HasPrefix(h.Status(&historyv1.StatusRequest{}).GetRun().GetTasks()["a"].GetError(), "waits for the lock")
	}
	pending := func(h *workertest.Handle) bool {
		return h.Status(&historyv1.StatusRequest{}).GetRun().GetState() == "pending"
	}
	workertest.Eventually(t, "one waits for the lock, the other for its turn", func() bool {
		return waits(second) && pending(third) || waits(third) && pending(second)
	})
	c.Fake.Release("a")
	for i, h := range []*workertest.Handle{first, second, third} {
		workertest.CheckRun(t, h.Wait(), "completed", nil)
		workertest.Replay(t, fmt.Sprintf("locked-%d", i+1), limits.Run{}, h.History(""))
	}
	for name, id := range map[string]string{"lock-task": names.TaskLock(lock), "lock-run": names.RunLock(lock)} {
		h := &workertest.Handle{Nodes: c, ID: names.LockWorkflowID(id)}
		workertest.Replay(t, name, limits.Run{}, h.History(""))
	}
}
