package dag_test

import (
	"slices"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// reference is the reference interpreter. It states the rules a second time, as plainly as possible and by name, and stores
// nothing that it can derive by looking at everything again. It is slow and shares no code with the package.
type reference struct {
	def          *v1.Definition
	order        []string            // tasks in the order of the graph
	tasks        map[string]*refTask // includes instances
	cancelled    bool
	aborted      string // state in which an Abort ends the run
	abortReason  string
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
	if r.firstFailure == "" && name == taskOf(name) && r.failsRun(name) && r.aborted != "rejected" {
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
	case r.aborted == "rejected":
		r.end(name, "rejected", r.abortReason)
		return true
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

// state returns the state of the run.
func (r *reference) state() string {
	switch {
	case r.aborted != "":
		return r.aborted
	case r.cancelled:
		return "cancelled"
	case slices.ContainsFunc(r.order, r.failsRun):
		return "failed"
	case slices.ContainsFunc(r.order, r.hasCancelled) && !slices.ContainsFunc(r.order, r.hasSuccess):
		return "cancelled"
	}
	return "completed"
}

// hasCancelled reports whether a task or one of its instances was cancelled.
func (r *reference) hasCancelled(name string) bool {
	return slices.ContainsFunc(append([]string{name}, r.tasks[name].instances...), func(one string) bool { return r.tasks[one].state == "cancelled" })
}

// hasSuccess reports whether a task has succeeded, with at least one of its instances if it has any.
func (r *reference) hasSuccess(name string) bool {
	instances := r.tasks[name].instances
	return r.ok(name) && (len(instances) == 0 || slices.ContainsFunc(instances, r.ok))
}
