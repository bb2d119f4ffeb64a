package dag_test

import (
	"fmt"
	"slices"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
)

// reference is the reference interpreter. It states the rules a second time, as plainly as possible and by name, and stores
// nothing that it can derive by looking at everything again. It is slow and shares no code with the package.
type reference struct {
	def          *v1.Definition
	order        []string            // tasks in the order of the graph
	tasks        map[string]*refTask // includes instances
	cancelled    bool
	aborted      string // state in which an Abort ends the run
	firstFailure string
}

type refTask struct {
	state, reason string
	asked         string // pending question: condition, expand or none
	backoff       bool
	failure       string // state of the attempt that is being retried
	failureReason string
	doom          string // state in which it ends unless it completes
	doomReason    string
	attempt       int32
	claim         int32
	exit          int32
	retried       bool
	ends          int // number of times it ended

	fanned    bool     // it has fanned out
	remote    bool     // it has fanned out, and its instances are partitioned
	instances []string // in order
}

const (
	refTerminal = "completed stopped skipped failed killed_oom lost killed dead_letter rejected cancelled"
	refFailure  = "failed killed_oom lost killed dead_letter rejected"
)

func newReference(def *v1.Definition) *reference {
	r := &reference{def: def, tasks: make(map[string]*refTask)}
	if g, err := dag.NewGraph(def, mentions(def)); err == nil {
		for i := range g.Len() {
			r.order = append(r.order, g.Name(i))
		}
	}
	for name := range def.Tasks {
		r.tasks[name] = &refTask{state: "pending", exit: -1}
	}
	r.fixpoint()
	return r
}

func (r *reference) terminal(name string) bool { return wordIn(r.tasks[name].state, refTerminal) }

func (r *reference) ok(name string) bool { return wordIn(r.tasks[name].state, "completed stopped") }

func (r *reference) over() bool {
	return !slices.ContainsFunc(r.order, func(name string) bool { return !r.terminal(name) })
}

// settled reports whether everything above a task has ended.
func (r *reference) settled(name string) bool {
	return !slices.ContainsFunc(ancestors(r.def, name), func(a string) bool { return !r.terminal(a) })
}

// countsAs implements the table "How a task ends", for children.
func (r *reference) countsAs(name string) string {
	t := r.tasks[name]
	switch {
	case wordIn(t.state, "completed stopped"):
		return "success"
	case t.state == "skipped" && wordIn(t.reason, "condition when"):
		return "neutral"
	case t.state == "skipped" && t.reason == "upstream":
		if r.parents(name)["failure"] > 0 {
			return "failure"
		}
		return "neutral"
	case t.state != "skipped" && r.def.Tasks[name].ContinueOnError:
		return "success"
	}
	return "failure"
}

// parents returns how many parents of a task count as each effect.
func (r *reference) parents(name string) map[string]int {
	n := make(map[string]int)
	for _, parent := range r.def.Tasks[name].DependsOn {
		n[r.countsAs(parent)]++
	}
	return n
}

// refHolds implements the table of the triggers.
func refHolds(when string, n map[string]int) bool {
	all := n["success"] + n["neutral"] + n["failure"]
	switch when {
	case "all_success":
		return n["success"] == all
	case "all_failed":
		return n["failure"] == all
	case "one_success":
		return n["success"] >= 1
	case "one_failed":
		return n["failure"] >= 1
	case "none_failed":
		return n["failure"] == 0
	}
	return true // all_done, always
}

// failsRun implements the table "How a task ends", for the run.
func (r *reference) failsRun(name string) bool {
	return wordIn(r.tasks[name].state, refFailure) && !r.def.Tasks[name].ContinueOnError
}

func (r *reference) halted() bool { return r.def.FailurePolicy == "halt" && r.firstFailure != "" }

func (r *reference) runAllows(name string) bool {
	task := taskOf(name)
	def := r.def.Tasks[task]
	return !r.halted() || def.OnFailure == "run" || wordIn(def.When, "always all_done one_failed all_failed") ||
		r.tasks[name].retried || r.tasks[task].retried
}

// exceeded reports whether more instances of a task have failed than maxFailures allows.
func (r *reference) exceeded(task string) bool {
	n := int32(0)
	for _, name := range r.tasks[task].instances {
		if wordIn(r.tasks[name].state, refFailure+" cancelled") {
			n++
		}
	}
	return n > r.def.Tasks[task].MaxFailures
}

func (r *reference) mayStart(name string) bool {
	stopped := name != taskOf(name) && r.exceeded(taskOf(name)) && !r.tasks[name].retried
	return !r.cancelled && r.runAllows(name) && !stopped
}

func (r *reference) end(name, state, reason string) {
	t := r.tasks[name]
	t.state, t.reason, t.asked, t.backoff, t.retried, t.doom, t.failure = state, reason, "", false, false, "", ""
	t.ends++
	if r.firstFailure == "" && name == taskOf(name) && r.failsRun(name) {
		r.firstFailure = name
	}
}

// unstarted ends a task that does not run. Open instances from an earlier start are skipped.
func (r *reference) unstarted(name, state, reason string) {
	for _, one := range r.tasks[name].instances {
		if !r.terminal(one) {
			r.end(one, "skipped", reason)
		}
	}
	r.end(name, state, reason)
}

func (r *reference) skip(name, reason string) { r.unstarted(name, "skipped", reason) }

func (r *reference) queue(name string) {
	t := r.tasks[name]
	t.state, t.asked, t.backoff = "queued", "", false
	t.claim++
}

// begin starts a task whose parents and condition allow it.
func (r *reference) begin(name string) {
	t := r.tasks[name]
	switch {
	case r.def.Tasks[name].Parallel == nil:
		r.queue(name)
	case t.fanned:
		t.state, t.reason, t.asked = "running", "", ""
	default:
		t.asked = "expand"
	}
}

// fixpoint applies the rules to all tasks until nothing changes. It visits a task before its instances, because a task that
// does not run does not derive its end from them.
func (r *reference) fixpoint() {
	for changed := true; changed; {
		changed = false
		for _, task := range r.order {
			for _, name := range append([]string{task}, r.tasks[task].instances...) {
				if r.look(name, r.tasks[name]) {
					changed = true
				}
			}
		}
	}
}

func (r *reference) look(name string, t *refTask) (changed bool) {
	waits := t.state == "pending" || t.state == "queued"
	switch {
	case len(t.instances) > 0 && !r.terminal(name) && !slices.ContainsFunc(t.instances, func(one string) bool { return !r.terminal(one) }):
		r.endGroup(name, t)
		return true
	case !waits, len(t.instances) > 0 && r.cancelled:
		return false
	case r.cancelled:
		r.end(name, "cancelled", "run_cancelled")
		return true
	case !r.mayStart(name) && t.failure != "":
		t.attempt--
		r.end(name, t.failure, t.failureReason)
		return true
	case !r.mayStart(name) && r.runAllows(name):
		r.end(name, "skipped", "max_failures")
		return true
	case !r.mayStart(name):
		r.skip(name, "halt")
		return true
	case t.state == "queued" || t.asked != "":
		return false
	case name != taskOf(name):
		if r.tasks[taskOf(name)].state == "running" {
			r.queue(name)
			return true
		}
		return false
	case !r.settled(name):
		return false
	}
	def, parents := r.def.Tasks[name], r.parents(name)
	switch {
	case def.When != "" && !refHolds(def.When, parents):
		r.skip(name, "when")
	case hasBrokenGuard(def, r.countsAs):
		r.skip(name, "upstream")
	case def.Condition != "":
		t.asked = "condition"
	case def.When != "" || def.OnFailure == "run" || len(def.DependsOn) == 0:
		r.begin(name)
	case parents["failure"] > 0 || parents["success"] == 0:
		r.skip(name, "upstream")
	default:
		r.begin(name)
	}
	return true
}

// endGroup ends a task whose instances have all ended.
func (r *reference) endGroup(name string, t *refTask) {
	t.exit = 0
	var codes []int32
	completed, skipped := true, ""
	for _, one := range t.instances {
		codes = append(codes, r.tasks[one].exit)
		completed = completed && r.ok(one)
		if skipped == "" && r.tasks[one].state == "skipped" {
			skipped = r.tasks[one].reason
		}
	}
	if i := slices.IndexFunc(codes, func(c int32) bool { return c != 0 && c != -1 }); i >= 0 {
		t.exit = codes[i]
	} else if slices.Contains(codes, -1) {
		t.exit = -1
	}
	switch {
	case completed:
		r.end(name, "completed", "")
	case t.doom != "":
		r.end(name, t.doom, t.doomReason)
	case r.cancelled:
		r.end(name, "cancelled", "run_cancelled")
	case r.exceeded(name):
		r.end(name, "failed", "instances")
	case skipped != "":
		r.end(name, "skipped", skipped)
	default:
		r.end(name, "completed", "")
	}
}

// step applies one event. After the end of the run it is a no-op.
func (r *reference) step(name string, e dag.Event) {
	if r.over() {
		return
	}
	switch e := e.(type) {
	case dag.Cancel:
		r.cancelled = true
	case dag.Abort:
		if !r.cancelled {
			r.cancelled, r.aborted = true, e.State
		}
	default:
		if t := r.tasks[name]; t != nil {
			r.taskStep(name, t, e)
		}
	}
	r.fixpoint()
}

func (r *reference) taskStep(name string, t *refTask, e dag.Event) {
	requested := func(claim int32) bool { return t.state == "queued" && !t.backoff && t.claim == claim }
	dispatched := wordIn(t.state, "assigned running") && len(t.instances) == 0
	switch e := e.(type) {
	case dag.Retry:
		if t.state == "dead_letter" && !r.cancelled && r.tasks[taskOf(name)].doom == "" {
			r.putBack([]string{name}, false, nil)
		}
	case dag.CancelTask:
		r.doom(name, "cancelled", "task_cancelled")
	case dag.Kill:
		r.doom(name, "killed", "killed")
	case dag.Expire:
		r.doom(name, "failed", "deadline")
	case dag.Evaluated:
		if t.asked == "condition" {
			switch {
			case e.Broken:
				r.unstarted(name, "failed", "system")
			case e.Err != "":
				r.unstarted(name, "failed", "condition_error")
			case e.Value:
				r.begin(name)
			default:
				r.skip(name, "condition")
			}
		}
	case dag.Expanded:
		if t.asked == "expand" {
			r.expanded(name, t, e)
		}
	case dag.Placed:
		if requested(e.Claim) {
			t.state, t.reason = "assigned", ""
		}
	case dag.Reused:
		if requested(e.Claim) {
			t.exit = e.ExitCode
			r.end(name, "completed", "")
		}
	case dag.Running:
		if t.state == "assigned" && t.claim == e.Claim {
			t.state = "running"
		}
	case dag.GaveUp:
		if requested(e.Claim) {
			r.end(name, "failed", "placement_timeout")
		}
	case dag.BackoffOver:
		if t.state == "queued" && t.backoff && t.claim == e.Claim {
			r.queue(name)
		}
	case dag.Ended:
		if dispatched && t.claim == e.Claim {
			r.attemptEnded(name, t, e)
		}
	}
}

func (r *reference) expanded(name string, t *refTask, e dag.Expanded) {
	switch {
	case e.Broken:
		r.end(name, "failed", "system")
	case e.Err != "":
		r.end(name, "failed", "fan_out")
	case e.Count == 0:
		t.exit = 0
		r.end(name, "completed", "")
	case e.Partitioned:
		t.state, t.reason, t.asked, t.fanned, t.remote = "running", "", "", true, true
		t.claim++
	default:
		t.state, t.reason, t.asked, t.fanned = "running", "", "", true
		for k := range e.Count {
			one := fmt.Sprintf("%s[%d]", name, e.From+k)
			t.instances = append(t.instances, one)
			r.tasks[one] = &refTask{state: "pending", claim: t.claim, exit: -1}
		}
	}
}

// doom ends a waiting task at once, and marks a running one to end that way unless it completes.
func (r *reference) doom(name, state, reason string) {
	t := r.tasks[name]
	switch {
	case r.cancelled || r.terminal(name) || t.doom != "":
	case len(t.instances) > 0:
		t.doom, t.doomReason = state, reason
		for _, one := range t.instances {
			r.doom(one, state, reason)
		}
	case wordIn(t.state, "pending queued"):
		r.end(name, state, reason)
	default:
		t.doom, t.doomReason = state, reason
	}
}

// putBack requeues dead letters, everything that did not complete, or some tasks with all tasks below them.
func (r *reference) putBack(dead []string, failed bool, from []string) {
	if failed || len(from) > 0 {
		r.cancelled, r.aborted = false, ""
	}
	wasHalted := r.halted()
	fresh := func(name string, retried bool) {
		t := r.tasks[name]
		*t = refTask{state: "pending", claim: t.claim, exit: -1, retried: retried}
	}
	keeping := func(name string, retried bool) {
		t := r.tasks[name]
		instances := t.instances
		fresh(name, retried)
		t.instances, t.fanned = instances, len(instances) > 0
	}
	var roots, resumed, insisted []string
	for _, name := range r.order {
		below := slices.ContainsFunc(from, func(f string) bool { return f == name || slices.Contains(ancestors(r.def, name), f) })
		switch t := r.tasks[name]; {
		case below:
			for _, one := range t.instances {
				t.claim = max(t.claim, r.tasks[one].claim)
				delete(r.tasks, one)
			}
			fresh(name, false)
			roots, insisted = append(roots, name), append(insisted, name)
		case failed && !r.ok(name):
			keeping(name, false)
			for _, one := range t.instances {
				if !r.ok(one) {
					fresh(one, false)
				}
			}
			roots = append(roots, name)
		}
	}
	for _, name := range dead {
		if t := r.tasks[name]; t == nil || t.state != "dead_letter" {
			continue // it is rerun anyway
		}
		fresh(name, true)
		task := taskOf(name)
		reopened := task != name && r.terminal(task)
		if reopened {
			keeping(task, true)
		}
		if (reopened || task == name) && !slices.Contains(roots, task) {
			roots, resumed = append(roots, task), append(resumed, task)
		}
	}
	if r.firstFailure != "" && !r.failsRun(r.firstFailure) {
		r.firstFailure = ""
		for _, other := range slices.Backward(r.order) {
			if r.failsRun(other) {
				r.firstFailure = other
			}
		}
	}
	if r.halted() {
		for _, name := range insisted {
			r.tasks[name].retried = true
		}
	}
	lifted := wasHalted && !r.halted()
	for _, name := range r.order {
		if t := r.tasks[name]; lifted && t.state == "skipped" && t.reason == "halt" {
			roots = append(roots, name)
		}
	}
	for _, name := range r.order {
		t := r.tasks[name]
		below := slices.ContainsFunc(ancestors(r.def, name), func(a string) bool { return slices.Contains(roots, a) })
		switch {
		case t.state == "skipped" && (below || slices.Contains(roots, name)):
			if !r.runAllows(name) {
				t.reason = "halt"
				continue
			}
			keeping(name, false)
			for _, one := range t.instances {
				if r.tasks[one].state == "skipped" {
					fresh(one, false)
				}
			}
		case !r.terminal(name):
			for _, one := range t.instances {
				switch o := r.tasks[one]; {
				case o.state != "skipped":
				case o.reason == "max_failures" && !r.exceeded(name) && !r.runAllows(one):
					o.reason = "halt"
				case o.reason == "max_failures" && !r.exceeded(name), o.reason == "halt" && lifted:
					fresh(one, false)
				}
			}
		}
	}
	for _, name := range r.order {
		if !r.settled(name) {
			r.tasks[name].asked = ""
		}
	}
	for _, name := range resumed {
		if r.settled(name) {
			r.begin(name)
		}
	}
	r.fixpoint()
}

func (r *reference) attemptEnded(name string, t *refTask, e dag.Ended) {
	retries := refRetries(r.def.Tasks[taskOf(name)])
	if e.State == "moved" && !r.cancelled && t.doom == "" && !t.remote {
		t.reason = e.Reason
		t.state = "queued" // if it may not start, fixpoint ends it
		if r.mayStart(name) {
			r.queue(name)
		}
		return
	}
	t.exit = e.ExitCode
	state := e.State
	if state == "moved" || state == "skipped" && !t.remote {
		state = "failed"
	}
	switch {
	case state == "completed":
		r.end(name, state, e.Reason)
	case t.doom != "":
		r.end(name, t.doom, t.doomReason)
	case r.cancelled:
		r.end(name, "cancelled", "run_cancelled")
	case !wordIn(state, "failed killed_oom lost") || e.NoRetry || retries == 0 || t.remote:
		r.end(name, state, e.Reason)
	case t.attempt == retries:
		r.end(name, "dead_letter", e.Reason)
	case !r.mayStart(name):
		r.end(name, state, e.Reason)
	default:
		t.state, t.reason, t.backoff = "queued", e.Reason, true
		t.failure, t.failureReason = state, e.Reason
		t.attempt++
	}
}

// refRetries returns how often a failed attempt of a task is retried.
func refRetries(def *v1.TaskDefinition) int32 {
	switch {
	case def.Retry == nil:
		return 3
	case def.Retry.Retryable != nil && !def.Retry.GetRetryable():
		return 0
	case def.Retry.MaxRetries == nil:
		return 3
	}
	return def.Retry.GetMaxRetries()
}

// state returns the state of the run.
func (r *reference) state() string {
	switch {
	case r.aborted != "":
		return r.aborted
	case r.cancelled:
		return "cancelled"
	case slices.ContainsFunc(r.order, r.failsRun):
		return "failed"
	}
	return "completed"
}
