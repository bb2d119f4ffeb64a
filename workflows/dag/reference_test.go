package dag_test

import (
	"slices"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
)

// The reference interpreter: the rules once more, as plainly as they can be said,
// by name, with nothing remembered that can be found out by looking at everything
// again. It is slow and shares no code with the package.
type reference struct {
	def          *v1.Definition
	order        []string // that of the graph
	seed         uint64
	tasks        map[string]*refTask
	cancelled    bool
	firstFailure string
}

type refTask struct {
	state, reason string
	asked         bool // the condition has been asked for
	backoff       bool
	failure       string // of the attempt that is being repeated
	failureReason string
	attempt       int32
	claim         int32
	retried       bool
	ends          int // how often it ended
}

const (
	refTerminal = "completed stopped skipped failed killed_oom lost killed dead_letter rejected cancelled"
	refFailure  = "failed killed_oom lost killed dead_letter rejected"
)

func newReference(def *v1.Definition, seed uint64) *reference {
	r := &reference{def: def, seed: seed, tasks: make(map[string]*refTask)}
	if g, err := dag.NewGraph(def); err == nil {
		for i := range g.Len() {
			r.order = append(r.order, g.Name(i))
		}
	}
	for name := range def.Tasks {
		r.tasks[name] = &refTask{state: "pending"}
	}
	r.fixpoint()
	return r
}

func (r *reference) terminal(name string) bool { return wordIn(r.tasks[name].state, refTerminal) }

func (r *reference) over() bool {
	for name := range r.tasks {
		if !r.terminal(name) {
			return false
		}
	}
	return true
}

// countsAs is the table "How a task ends", for children.
func (r *reference) countsAs(name string) string {
	t := r.tasks[name]
	switch {
	case wordIn(t.state, "completed stopped"):
		return "success"
	case t.state == "skipped" && wordIn(t.reason, "condition condition_error"):
		return "neutral"
	case t.state == "skipped" && t.reason == "upstream":
		for _, parent := range r.def.Tasks[name].DependsOn {
			if r.countsAs(parent) == "failure" {
				return "failure"
			}
		}
		return "neutral"
	case t.state != "skipped" && r.def.Tasks[name].ContinueOnError:
		return "success"
	}
	return "failure"
}

// failsRun is the same table, for the run.
func (r *reference) failsRun(name string) bool {
	return wordIn(r.tasks[name].state, refFailure) && !r.def.Tasks[name].ContinueOnError
}

func (r *reference) halted() bool { return r.def.FailurePolicy == "halt" && r.firstFailure != "" }

func (r *reference) mayStart(name string) bool {
	return !r.cancelled && (!r.halted() || r.def.Tasks[name].OnFailure == "run" || r.tasks[name].retried)
}

func (r *reference) end(name, state, reason string) {
	t := r.tasks[name]
	t.state, t.reason, t.asked, t.backoff, t.retried = state, reason, false, false, false
	t.ends++
	if r.firstFailure == "" && r.failsRun(name) {
		r.firstFailure = name
	}
}

func (r *reference) queue(name string) {
	t := r.tasks[name]
	t.state, t.asked, t.backoff = "queued", false, false
	t.claim++
}

// fixpoint applies the rules to all tasks until nothing changes.
func (r *reference) fixpoint() {
	for changed := true; changed; {
		changed = false
		for name, t := range r.tasks {
			if r.look(name, t) {
				changed = true
			}
		}
	}
}

func (r *reference) look(name string, t *refTask) (changed bool) {
	def := r.def.Tasks[name]
	waits := t.state == "pending" || t.state == "queued"
	switch {
	case !waits:
		return false
	case r.cancelled:
		r.end(name, "cancelled", "run_cancelled")
		return true
	case !r.mayStart(name) && t.failure != "":
		t.attempt--
		r.end(name, t.failure, t.failureReason)
		return true
	case !r.mayStart(name):
		r.end(name, "skipped", "halt")
		return true
	case t.state == "queued" || t.asked:
		return false
	case slices.ContainsFunc(ancestors(r.def, name), func(a string) bool { return !r.terminal(a) }):
		return false
	}
	var failures, successes int
	for _, parent := range def.DependsOn {
		switch r.countsAs(parent) {
		case "failure":
			failures++
		case "success":
			successes++
		}
	}
	switch {
	case def.Condition != "":
		t.asked = true
	case def.OnFailure == "run" || len(def.DependsOn) == 0:
		r.queue(name)
	case failures > 0 || successes == 0:
		r.end(name, "skipped", "upstream")
	default:
		r.queue(name)
	}
	return true
}

// step is one event. Nothing happens after the end of the run.
func (r *reference) step(name string, e dag.Event) {
	if r.over() {
		return
	}
	t := r.tasks[name]
	switch e := e.(type) {
	case dag.Cancel:
		r.cancelled = true
	case dag.Retry:
		if t.state == "dead_letter" && !r.cancelled {
			r.putBack(name, t)
		}
	case dag.Evaluated:
		if t.state == "pending" && t.asked {
			switch value, err := r.oracle(name); {
			case err != "":
				r.end(name, "skipped", "condition_error")
			case value:
				r.queue(name)
			default:
				r.end(name, "skipped", "condition")
			}
		}
	case dag.Placed:
		if t.state == "queued" && !t.backoff && t.claim == e.Claim {
			t.state, t.reason = "assigned", ""
		}
	case dag.Running:
		if wordIn(t.state, "assigned") && t.claim == e.Claim {
			t.state = "running"
		}
	case dag.GaveUp:
		if t.state == "queued" && !t.backoff && t.claim == e.Claim {
			r.end(name, "failed", "placement_timeout")
		}
	case dag.BackoffOver:
		if t.state == "queued" && t.backoff && t.claim == e.Claim {
			r.queue(name)
		}
	case dag.Ended:
		if wordIn(t.state, "assigned running") && t.claim == e.Claim {
			r.attemptEnded(name, t, e)
		}
	}
	r.fixpoint()
}

func (r *reference) putBack(name string, t *refTask) {
	wasHalted := r.halted()
	*t = refTask{state: "queued", claim: t.claim + 1, retried: true}
	if r.firstFailure == name {
		r.firstFailure = ""
		for _, other := range slices.Backward(r.order) {
			if r.failsRun(other) {
				r.firstFailure = other
			}
		}
	}
	again := []string{name}
	for other, o := range r.tasks {
		if wasHalted && !r.halted() && o.state == "skipped" && o.reason == "halt" {
			again = append(again, other)
		}
	}
	for other, o := range r.tasks {
		below := slices.ContainsFunc(ancestors(r.def, other), func(a string) bool { return slices.Contains(again, a) })
		if o.state == "skipped" && (below || slices.Contains(again, other)) {
			*o = refTask{state: "pending", claim: o.claim}
		}
	}
	unsettled := func(other string) bool {
		return slices.ContainsFunc(ancestors(r.def, other), func(a string) bool { return !r.terminal(a) })
	}
	for other, o := range r.tasks {
		o.asked = o.asked && !unsettled(other)
	}
	if unsettled(name) {
		t.state = "pending"
		t.claim--
	}
}

func (r *reference) oracle(name string) (bool, string) {
	return oracle(r.seed, name, ancestors(r.def, name), func(a string) string { return r.tasks[a].state })
}

func (r *reference) attemptEnded(name string, t *refTask, e dag.Ended) {
	retries := refRetries(r.def.Tasks[name])
	switch {
	case r.cancelled && e.State != "completed":
		r.end(name, "cancelled", "run_cancelled")
	case e.State == "moved":
		t.reason = e.Reason
		t.state = "queued" // and if it may not start, look ends it
		if r.mayStart(name) {
			r.queue(name)
		}
	case !wordIn(e.State, "failed killed_oom lost") || e.NoRetry || retries == 0 || !r.mayStart(name):
		r.end(name, e.State, e.Reason)
	case t.attempt == retries:
		r.end(name, "dead_letter", e.Reason)
	default:
		t.state, t.reason, t.backoff = "queued", e.Reason, true
		t.failure, t.failureReason = e.State, e.Reason
		t.attempt++
	}
}

// refRetries is how often a failed attempt of a task is repeated.
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

// state is the state of the run.
func (r *reference) state() string {
	if r.cancelled {
		return "cancelled"
	}
	for name := range r.tasks {
		if r.failsRun(name) {
			return "failed"
		}
	}
	return "completed"
}
