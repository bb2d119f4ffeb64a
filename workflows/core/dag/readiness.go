package dag

import (
	"fmt"
	"slices"

	v1 "switchyard/proto/switchyard/v1"
)

// readiness counts the settled parents of each task, and decides what follows for the task when all have settled.
type readiness struct {
	*records
	progress []progress // of tasks
	settled  []int      // tasks whose children have not been informed yet, first in first out
}

func newReadiness(r *records) *readiness {
	return &readiness{records: r, progress: make([]progress, r.graph.Len())}
}

// progress holds derived data of a task; it follows from the records.
type progress struct {
	open      int32  // parents that are not settled
	failed    int32  // settled parents that count as failures
	succeeded int32  // settled parents that count as successes
	effect    effect // what the end counts as; neutral before the end
	asked     question
}

// A question is an unanswered question about a pending task.
type question uint8

const (
	nothing question = iota
	condition
	expansion
)

// learn counts a parent that has settled.
func (p *progress) learn(parent effect) {
	p.open--
	switch parent {
	case success:
		p.succeeded++
	case failure:
		p.failed++
	}
}

// ask requests the answer to a question about a pending task in this round's decisions.
func (r *readiness) ask(i int, q question) {
	r.progress[i].asked = q
	if q == condition {
		r.round.evaluate = append(r.round.evaluate, i)
	} else {
		r.round.expand = append(r.round.expand, i)
	}
}

// answered closes the question about a task, if there is one.
func (r *readiness) answered(i int) { r.progress[i].asked = nothing }

// An effect is what the end of a task counts as for its children.
type effect uint8

const (
	neutral effect = iota
	success
	failure
)

// isSettled reports whether a task and all its ancestors have ended.
func (r *readiness) isSettled(i int) bool {
	return r.progress[i].open == 0 && v1.IsTaskTerminal(r.tasks[i].State)
}

// isUndecided reports whether the parents of a pending task have settled and nothing has been decided about it.
func (r *readiness) isUndecided(i int) bool {
	return r.tasks[i].State == v1.TaskPending && r.progress[i].open == 0 && r.progress[i].asked == nothing
}

// inform counts a parent of a task that has settled. It reports whether the task is pending and waits for no other parent.
func (r *readiness) inform(i int, parent effect) bool {
	p := &r.progress[i]
	p.learn(parent)
	switch {
	case p.open > 0:
	case r.tasks[i].State == v1.TaskPending:
		return true
	case v1.IsTaskTerminal(r.tasks[i].State): // halt or Cancel ended it before its parents
		r.settled = append(r.settled, i)
	default: // it had begun when a parent was requeued
	}
	return false
}

// ended records the effect of the end of a task on its children.
func (r *readiness) ended(i int) {
	p := &r.progress[i]
	p.asked = nothing
	p.effect = r.effectOf(i)
	if p.open == 0 {
		r.settled = append(r.settled, i)
	}
}

// derive recomputes the progress of each task from the records.
func (r *readiness) derive() {
	for i := range r.progress {
		p := &r.progress[i]
		*p = progress{open: int32(len(r.graph.nodes[i].parents)), asked: p.asked}
		for _, parent := range r.graph.nodes[i].parents {
			if r.isSettled(parent) {
				p.learn(r.progress[parent].effect)
			}
		}
		// A question that was asked under parents that continue after all is asked again when they have ended.
		if p.open > 0 || r.tasks[i].State != v1.TaskPending {
			p.asked = nothing
		}
		if v1.IsTaskTerminal(r.tasks[i].State) {
			p.effect = r.effectOf(i)
		}
	}
}

// A verdict is what happens to a task whose parents have settled.
type verdict struct {
	action       action
	reason, text string // of a skip
}

// An action is the kind of a verdict.
type action uint8

const (
	toSkip action = iota
	toEvaluate
	toBegin
)

// verdict decides whether a task whose parents have settled starts, is skipped, or has its condition evaluated.
func (r *readiness) verdict(i int) verdict {
	n, p := &r.graph.nodes[i], &r.progress[i]
	succeeded, failed := int(p.succeeded), int(p.failed)
	neutral := len(n.parents) - succeeded - failed
	holds := n.when.holds(succeeded, neutral, failed)
	switch {
	case n.when != "" && !holds:
		return verdict{toSkip, v1.ReasonWhen, n.when.missed(succeeded, neutral, failed)}
	case n.conditional && n.when == "" && !n.always && r.failedGuard(i) >= 0:
	case n.conditional:
		return verdict{action: toEvaluate}
	case holds, n.always, len(n.parents) == 0:
		return verdict{action: toBegin}
	}
	return verdict{toSkip, v1.ReasonUpstream, r.upstream(i)}
}

// effectOf returns what an ended task counts as for its children.
func (r *readiness) effectOf(i int) effect {
	rec := r.tasks[i]
	switch {
	case v1.IsTaskSuccess(rec.State):
		return success
	case rec.State == v1.TaskSkipped:
		own := rec.Reason == v1.ReasonCondition || rec.Reason == v1.ReasonWhen
		if own || rec.Reason == v1.ReasonUpstream && r.progress[i].failed == 0 {
			return neutral
		}
		return failure
	}
	if r.graph.nodes[i].excused {
		return success
	}
	return failure
}

// upstream returns a message for people about why a task is skipped after its parents have settled. It names the task at the
// root of the skip, not one that was skipped in between.
func (r *readiness) upstream(i int) string {
	n := &r.graph.nodes[i]
	// Without a failure all parents are neutral, so any parent will do.
	at := r.failedGuard(i)
	if at < 0 {
		at = n.parents[0]
	}
	parent := r.tasks[at]
	text := parent.Error
	if parent.State != v1.TaskSkipped || parent.Reason != v1.ReasonUpstream && parent.Reason != v1.ReasonHalt {
		text = r.graph.ended(at, parent)
	}
	if n.conditional {
		text = fmt.Sprintf("%s, and the condition of %q does not mention %q", text, n.name, r.graph.Name(at))
	}
	return text
}

// failedGuard returns the first parent whose failure keeps a task from starting, or -1.
func (r *readiness) failedGuard(i int) int {
	if r.progress[i].failed == 0 {
		return -1
	}
	guards := r.graph.nodes[i].guards
	if at := slices.IndexFunc(guards, func(p int) bool { return r.progress[p].effect == failure }); at >= 0 {
		return guards[at]
	}
	return -1
}

// isAsked reports whether a question about i is open.
func (r *readiness) isAsked(i int, q question) bool {
	return i < r.graph.Len() && r.progress[i].asked == q
}

// enqueue requests a node under a new claim.
func (r *readiness) enqueue(i int, rec Record) {
	if i < r.graph.Len() {
		r.progress[i].asked = nothing
	}
	rec.State, rec.Backoff = v1.TaskQueued, false
	rec.Claim++
	r.set(i, rec)
	r.round.place = append(r.round.place, i)
}
