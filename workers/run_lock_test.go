package workers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/activities/executor/fake"
	v1 "switchyard/proto/switchyard/v1"
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

// TestMutex checks that one attempt at a time holds a mutex across all runs, and that other tasks of the runs continue.
func TestMutex(t *testing.T) {
	t.Parallel()
	step := script{"a": {{Duration: 2 * time.Millisecond}}, "b": {{Duration: 2 * time.Millisecond}}}
	c := shared(t).workers(t, step)
	c.start("n")
	const runs = 25
	document := fmt.Sprintf(`{name: mutex, tasks: {a: {type: shell, spec: {command: x}, mutex: m-%[1]s}, b: {type: shell, spec: {command: x}, mutex: m-%[1]s}}}`, c.label[:8])
	var handles []*handle
	for range runs {
		handles = append(handles, c.submit(c.input(document)))
	}
	var all []span
	for _, h := range handles {
		run := h.wait()
		want(t, run, "completed", nil)
		all = append(all, spans(t, run)...)
	}
	if n := atOnce(all); n != 1 || len(all) != 2*runs {
		t.Errorf("%d of %d ran at once", n, len(all))
	}
}

// TestSemaphore checks that a semaphore admits as many holders as it has places, including instances of several runs,
// and that a lock name from expressions survives continue-as-new.
func TestSemaphore(t *testing.T) {
	t.Parallel()
	limits := shortHistory(150)
	y := own(t, ControlConfig{locker: quickLocker, limits: limits})
	c := y.workers(t, script{"each": {{Duration: 20 * time.Millisecond}}})
	c.start("n")
	const document = `{name: semaphore, tasks: {each: {type: shell, spec: {command: x}, parallel: 20, semaphore: {name: "s-${{ workflow.name }}", limit: 3}}}}`
	a, b := c.submit(c.input(document)), c.submit(c.input(document))
	all := spans(t, a.wait())
	all = append(all, spans(t, b.wait())...)
	if n := atOnce(all); n > 3 || len(all) != 40 {
		t.Errorf("%d of %d ran at once", n, len(all))
	}
	if len(a.executions()) < 2 {
		t.Error("the run did not continue in a fresh history")
	}
	(&holders{cluster: y, t: t}).closedLock(names.TaskLock("s-semaphore"))
}

// TestWaitingForALock checks that a task names the holder of the lock that it waits for, and stops waiting when it is
// cancelled or held, or when the holder has ended.
func TestWaitingForALock(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{locker: quickLocker})
	c := y.workers(t, script{"holds": {{Block: true}}})
	c.start("n")
	holder := c.submit(c.input(`{name: holder, tasks: {holds: {type: shell, spec: {command: x}, mutex: m}}}`))
	c.running("holds")
	const document = `{name: waiter, tasks: {wants: {type: shell, spec: {command: x}, mutex: m}, other: {type: shell, spec: {command: x}}}}`
	text := "waits for the lock m, held by holds of " + holder.id
	waits := func(h *handle) {
		h.until("wants", func(task *v1.Task) bool { return task.GetState() == "queued" && task.GetError() == text })
	}
	first, second, third := c.submit(c.input(document)), c.submit(c.input(document)), c.submit(c.input(document))
	waits(first)
	waits(second)
	waits(third)
	first.until("other", func(task *v1.Task) bool { return task.GetState() == "completed" })
	if err := second.update(names.HoldUpdate, &v1.TaskCommand{Task: "wants"}); err != nil {
		t.Fatal(err)
	}
	third.signal(nil)
	want(t, third.wait(), "cancelled", map[string]string{"wants": "cancelled"})
	if err := y.conn.TerminateWorkflow(t.Context(), holder.id, "", "test"); err != nil {
		t.Fatal(err)
	}
	want(t, first.wait(), "completed", nil)
	if err := second.update(names.ReleaseUpdate, &v1.TaskCommand{Task: "wants"}); err != nil {
		t.Fatal(err)
	}
	want(t, second.wait(), "completed", nil)
	(&holders{cluster: y, t: t}).closedLock(names.TaskLock("m"))
}

// TestLockNamesAreMadeFromExpressions checks that runs wait only for runs with the same lock name, in all attempts, and
// that an invalid name fails the task.
func TestLockNamesAreMadeFromExpressions(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"a": {{Block: true}}, "b": {fake.Exit(1), {}}})
	c.start("n")
	lock := strings.ToLower(names.NewRunID("l")) // its name is unique to this test
	submit := func(stage string) *handle {
		in := c.input(fmt.Sprintf(`{name: deploys, inputs: {stage: {}}, tasks: {
			a: {type: shell, spec: {command: x}, mutex: "%[1]s-${{ workflow.input.stage }}"},
			b: {type: shell, spec: {command: x}, dependsOn: [a], retry: {backoffMs: 1}, semaphore: {name: "%[1]s.${{ parent.a.exitCode }}", limit: 1}}}}`, lock))
		in.Input = structOf(map[string]any{"stage": stage})
		return c.submit(in)
	}
	first := submit("live")
	first.started()
	second, other := submit("live"), submit("test")
	text := "waits for the lock " + lock + "-live, held by a of " + first.id
	second.until("a", func(task *v1.Task) bool { return task.GetState() == v1.TaskQueued && task.GetError() == text })
	other.started()
	wrong := submit("Live now").wait()
	want(t, wrong, "failed", map[string]string{"a": "failed", "b": "skipped"})
	a := wrong.GetTasks()["a"]
	if a.GetReason() != v1.ReasonExpression || a.GetAttempt() != 0 || !strings.Contains(a.GetError(), `is "`+lock+`-Live now", which is no name`) {
		t.Errorf("%s", summary(wrong))
	}
	c.fake.Release("a")
	for _, h := range []*handle{first, second, other} {
		want(t, h.wait(), "completed", nil)
	}
	replay(t, "lock-name", limits.Run{}, second.history(""))
}

// TestLockNamesOfInstances checks that instances in parts of a large fan-out take the locks that their items name.
func TestLockNamesOfInstances(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{locker: quickLocker, limits: limits.Run{Instances: 5, PartitionInstances: 6}})
	c := y.workers(t, script{"each": {{Duration: 20 * time.Millisecond}}})
	c.start("n")
	const document = `{name: named, tasks: {first: {type: shell, spec: {command: x}}, each: {
		type: shell, spec: {command: x}, dependsOn: [first], foreach: [a, b, a, b, a, b, a, b, a, b, a, b, a, b, a, b],
		semaphore: {name: "${{ input.item }}-${{ parent.first.exitCode }}-${{ workflow.name }}", limit: 1}}}}`
	h := c.submit(c.input(document))
	want(t, h.wait(), "completed", nil)
	var byItem [2][]span
	for _, from := range []int{0, 6, 12} {
		res := h.page(h.child(0, "each", from).id, &v1.InstancesRequest{Task: "each", From: int32(from), Limit: 6})
		for _, i := range res.GetInstances() {
			item := &byItem[i.GetIndex()%2]
			*item = append(*item, span{i.GetStartedAt().AsTime(), i.GetCompletedAt().AsTime()})
		}
	}
	for item, all := range byItem {
		if n := atOnce(all); n != 1 || len(all) != 8 {
			t.Errorf("%d of %d with item %d ran at once", n, len(all), item)
		}
	}
	for _, lock := range []string{"a-0-named", "b-0-named"} {
		(&holders{cluster: y, t: t}).closedLock(names.TaskLock(lock))
	}
}

// turns submits runs of a workflow with one task that runs until it is released. At most one of the runs may be open.
type turns struct {
	*workerSet
	strategy string
}

func (y *cluster) turns(t *testing.T, strategy string) *turns {
	c := y.workers(t, script{"a": {{Block: true}}})
	c.start("n")
	return &turns{c, strategy}
}

func (c *turns) submit() *handle {
	return c.workerSet.submit(c.input(fmt.Sprintf(
		`{name: %[1]s, concurrency: {maxRuns: 1, strategy: %[1]s}, tasks: {a: {type: shell, spec: {command: x}}}}`, c.strategy)))
}

func (h *handle) started() {
	h.t.Helper()
	h.until("a", func(task *v1.Task) bool { return task.GetState() == "assigned" })
}

// waitsFor waits until the run waits for another one without having started a task.
func (h *handle) waitsFor(other *handle) {
	h.t.Helper()
	eventually(h.t, h.id+" waits for "+other.id, func() bool {
		return slices.ContainsFunc(h.events().GetEvents(), func(e *v1.Event) bool {
			return e.GetEvent() == "queued" && e.GetTask() == "" && e.GetDetail() == "waits for "+other.id &&
				e.GetData().GetFields()["waitsFor"].GetListValue().GetValues()[0].GetStringValue() == other.id
		})
	})
	if s := h.status(&v1.StatusRequest{}).GetRun(); s.GetState() != "pending" || s.GetTasks()["a"].GetState() != "pending" {
		h.t.Errorf("%s", summary(s))
	}
}

// TestRunConcurrency checks that the runs of a workflow follow its concurrency strategy, whatever started them.
func TestRunConcurrency(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{locker: quickLocker})
	t.Run("queue", func(t *testing.T) {
		c := y.turns(t, "queue")
		first := c.submit()
		first.started()
		cancelled := c.submit()
		cancelled.waitsFor(first)
		last := c.submit()
		last.waitsFor(first)
		early := c.submit()
		early.waitsFor(first)
		early.must(names.CancelTaskUpdate, "a") // before the run may start
		cancelled.signal(nil)
		want(t, cancelled.wait(), "cancelled", map[string]string{"a": "cancelled"})
		c.fake.Release("a")
		want(t, first.wait(), "completed", nil)
		want(t, last.wait(), "completed", nil)
		want(t, early.wait(), "completed", map[string]string{"a": "cancelled"})
	})
	t.Run("replace", func(t *testing.T) {
		c := y.turns(t, "replace")
		first := c.submit()
		first.started()
		second := c.submit()
		run := first.wait()
		want(t, run, "cancelled", map[string]string{"a": "cancelled"})
		if run.GetReason() != "concurrency" || run.GetError() != "replaced by "+second.id {
			t.Errorf("%s", summary(run))
		}
		second.started()
	})
	for strategy, state := range map[string]string{"skip": "cancelled", "fail": "rejected"} {
		t.Run(strategy, func(t *testing.T) {
			c := y.turns(t, strategy)
			first := c.submit()
			first.started()
			run := c.submit().wait()
			want(t, run, state, map[string]string{"a": "cancelled"})
			if run.GetReason() != "concurrency" || !strings.Contains(run.GetError(), "open already: "+first.id) {
				t.Errorf("%s", summary(run))
			}
			first.signal(nil)
			first.wait()
			c.submit().started()
		})
	}
}

// TestHistoriesOfLocksReplay checks that locks, and the runs that wait for them, replay.
func TestHistoriesOfLocksReplay(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"a": {{Block: true}}})
	c.start("n")
	lock := names.NewRunID("l") // its name is unique to this test
	document := fmt.Sprintf(`{name: %[1]s, concurrency: {maxRuns: 2}, tasks: {a: {type: shell, spec: {command: x}, mutex: %[1]s}}}`, lock)
	first := c.submit(c.input(document))
	c.running("a")
	second, third := c.submit(c.input(document)), c.submit(c.input(document))
	waits := func(h *handle) bool {
		return strings.HasPrefix(h.status(&v1.StatusRequest{}).GetRun().GetTasks()["a"].GetError(), "waits for the lock")
	}
	pending := func(h *handle) bool { return h.status(&v1.StatusRequest{}).GetRun().GetState() == "pending" }
	eventually(t, "one waits for the lock, the other for its turn", func() bool {
		return waits(second) && pending(third) || waits(third) && pending(second)
	})
	c.fake.Release("a")
	for i, h := range []*handle{first, second, third} {
		want(t, h.wait(), "completed", nil)
		replay(t, fmt.Sprintf("locked-%d", i+1), limits.Run{}, h.history(""))
	}
	for name, id := range map[string]string{"lock-task": names.TaskLock(lock), "lock-run": names.RunLock(lock)} {
		h := &handle{workerSet: c, id: names.LockWorkflowID(id)}
		replay(t, name, limits.Run{}, h.history(""))
	}
}
