package run_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/activities/executor/fake"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// span is when an attempt ran, by the clock of its node.
type span struct{ from, to time.Time }

// spans returns when the tasks of a run, or the instances of a task, ran.
func spans(t *testing.T, run *v1.Run) (all []span) {
	t.Helper()
	add := func(name string, from, to interface{ AsTime() time.Time }) {
		s := span{from.AsTime(), to.AsTime()}
		if !s.to.After(s.from) {
			t.Errorf("%s ran from %v to %v", name, s.from, s.to)
		}
		all = append(all, s)
	}
	for name, task := range run.GetTasks() {
		if task.Count == nil {
			add(name, task.GetStartedAt(), task.GetCompletedAt())
		}
		for _, i := range task.GetInstances() {
			add(names.InstanceName(name, int(i.GetIndex())), i.GetStartedAt(), i.GetCompletedAt())
		}
	}
	return all
}

// uniqueLock returns the name of a lock that only the calling test uses.
func uniqueLock() string { return strings.ToLower(names.NewRunID("l")) }

// atOnce returns the largest number of overlapping spans.
func atOnce(all []span) (most int) {
	for _, s := range all {
		n := 0
		for _, o := range all {
			if !o.from.After(s.from) && o.to.After(s.from) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// TestSemaphoreAdmitsAsManyHoldersAsItHasPlaces checks that a semaphore admits as many holders as it has places,
// including instances of several runs, and that a lock name from expressions survives continue-as-new.
func TestSemaphoreAdmitsAsManyHoldersAsItHasPlaces(t *testing.T) {
	t.Parallel()
	y := workertest.SharedWithin(t, shortHistory(100))
	c := y.Nodes(t, workertest.Script{"each": {{Duration: 20 * time.Millisecond}}})
	c.Start("n")
	lock := uniqueLock()
	document := fmt.Sprintf(`{name: semaphore, tasks: {each: {type: shell, spec: {command: x}, parallel: 20, semaphore: {name: "%s-${{ workflow.name }}", limit: 3}}}}`, lock)
	a, b := c.Submit(c.Input(document)), c.Submit(c.Input(document))
	all := spans(t, a.Wait())
	all = append(all, spans(t, b.Wait())...)
	if n := atOnce(all); n > 3 || len(all) != 40 {
		t.Errorf("%d of %d ran at once", n, len(all))
	}
	if len(executionsOf(a)) < 2 {
		t.Error("the run did not continue in a fresh history")
	}
	y.AwaitLockEnd(t, names.TaskLock(lock+"-semaphore"))
}

// TestTaskNamesTheHolderOfItsLock checks that a task names the holder of the lock that it waits for, and stops waiting
// when it is cancelled or held, or when the holder has ended.
func TestTaskNamesTheHolderOfItsLock(t *testing.T) {
	t.Parallel()
	y := workertest.Shared(t)
	c := y.Nodes(t, workertest.Script{"holds": {{Block: true}}})
	c.Start("n")
	lock := uniqueLock()
	holder := c.Submit(c.Input(fmt.Sprintf(`{name: holder, tasks: {holds: {type: shell, spec: {command: x}, mutex: %s}}}`, lock)))
	c.AwaitRunning("holds")
	document := fmt.Sprintf(`{name: waiter, tasks: {wants: {type: shell, spec: {command: x}, mutex: %s}, other: {type: shell, spec: {command: x}}}}`, lock)
	text := "waits for the lock " + lock + ", held by holds of " + holder.ID
	waits := func(h *workertest.Handle) {
		h.AwaitTask("wants", func(task *v1.Task) bool { return task.GetState() == "queued" && task.GetError() == text })
	}
	first, second, third := c.Submit(c.Input(document)), c.Submit(c.Input(document)), c.Submit(c.Input(document))
	waits(first)
	waits(second)
	waits(third)
	first.AwaitTask("other", func(task *v1.Task) bool { return task.GetState() == "completed" })
	if err := sendUpdate(second, names.HoldUpdate, &historyv1.TaskCommand{Task: "wants"}); err != nil {
		t.Fatal(err)
	}
	third.Cancel(nil)
	workertest.CheckRun(t, third.Wait(), "cancelled", map[string]string{"wants": "cancelled"})
	if err := y.Conn.TerminateWorkflow(t.Context(), holder.ID, "", "test"); err != nil {
		t.Fatal(err)
	}
	workertest.CheckRun(t, first.Wait(), "completed", nil)
	if err := sendUpdate(second, names.ReleaseUpdate, &historyv1.TaskCommand{Task: "wants"}); err != nil {
		t.Fatal(err)
	}
	workertest.CheckRun(t, second.Wait(), "completed", nil)
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

// turns submits runs of a workflow with one task that runs until it is released. At most one of the runs may be open.
type turns struct {
	*workertest.Nodes
	strategy string
}

func newTurns(t *testing.T, y *workertest.Cluster, strategy string) *turns {
	c := y.Nodes(t, workertest.Script{"a": {{Block: true}}})
	c.Start("n")
	return &turns{c, strategy}
}

func (c *turns) submit() *workertest.Handle {
	return c.Nodes.Submit(c.Input(fmt.Sprintf(
		`{name: %[1]s, concurrency: {maxRuns: 1, strategy: %[1]s}, tasks: {a: {type: shell, spec: {command: x}}}}`, c.strategy)))
}

func awaitStart(h *workertest.Handle) {
	h.T.Helper()
	h.AwaitTask("a", func(task *v1.Task) bool { return task.GetState() == "assigned" })
}

// awaitWaitFor waits until the run waits for another one without having started a task.
func awaitWaitFor(h *workertest.Handle, other *workertest.Handle) {
	h.T.Helper()
	workertest.Eventually(h.T, h.ID+" waits for "+other.ID, func() bool {
		return slices.ContainsFunc(eventsOf(h).GetEvents(), func(e *v1.Event) bool {
			return e.GetEvent() == "queued" && e.GetTask() == "" && e.GetDetail() == "waits for "+other.ID &&
				e.GetData().GetFields()["waitsFor"].GetListValue().GetValues()[0].GetStringValue() == other.ID
		})
	})
	if s := h.Status(&historyv1.StatusRequest{}).GetRun(); s.GetState() != "pending" || s.GetTasks()["a"].GetState() != "pending" {
		h.T.Errorf("%s", workertest.Summary(s))
	}
}

// TestRunsFollowTheirConcurrencyStrategy checks that a run waits for its place, or replaces the run that has it.
func TestRunsFollowTheirConcurrencyStrategy(t *testing.T) {
	t.Parallel()
	y := workertest.Shared(t)
	t.Run("queue", func(t *testing.T) {
		c := newTurns(t, y, "queue")
		first := c.submit()
		awaitStart(first)
		cancelled := c.submit()
		awaitWaitFor(cancelled, first)
		last := c.submit()
		awaitWaitFor(last, first)
		early := c.submit()
		awaitWaitFor(early, first)
		mustUpdate(early, names.CancelTaskUpdate, "a") // before the run may start
		for _, c := range []struct{ update, state, text string }{{names.PauseUpdate, "paused", ""}, {names.ResumeUpdate, "pending", "the run waits for its place"}} {
			if err := sendUpdate(last, c.update, &historyv1.RunCommand{}); err != nil {
				t.Fatal(err)
			}
			run := last.Status(&historyv1.StatusRequest{}).GetRun()
			if run.GetState() != c.state || !strings.HasPrefix(run.GetError(), c.text) {
				t.Errorf("after %s the waiting run is %s: %s", c.update, run.GetState(), run.GetError())
			}
		}
		cancelled.Cancel(nil)
		workertest.CheckRun(t, cancelled.Wait(), "cancelled", map[string]string{"a": "cancelled"})
		c.Fake.Release("a")
		workertest.CheckRun(t, first.Wait(), "completed", nil)
		workertest.CheckRun(t, last.Wait(), "completed", nil)
		workertest.CheckRun(t, early.Wait(), "cancelled", map[string]string{"a": "cancelled"})
	})
	t.Run("replace", func(t *testing.T) {
		c := newTurns(t, y, "replace")
		first := c.submit()
		awaitStart(first)
		second := c.submit()
		run := first.Wait()
		workertest.CheckRun(t, run, "cancelled", map[string]string{"a": "cancelled"})
		if run.GetReason() != "concurrency" || run.GetError() != "replaced by "+second.ID {
			t.Errorf("%s", workertest.Summary(run))
		}
		awaitStart(second)
	})
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
