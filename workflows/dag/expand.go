package dag

import (
	"slices"

	v1 "switchyard/proto/switchyard/v1"
)

// Expanded is the answer to Decisions.Expand. Count instances, numbered From, From+1, ..., are appended to the state, and each
// requests a node.
type Expanded struct {
	Task, From, Count int
	// Partitioned is set if other workflows run the instances. No records are appended, and the task is running, under a new
	// claim, until an Ended reports its end. Decisions.Stop stops it and Decisions.Halt halts it.
	Partitioned bool
	// Err is why the number is unknown. If it is set, the task fails without a retry.
	Err string
	// Broken is set if the system is at fault and not the expression.
	Broken bool
}

func (e Expanded) apply(s *State) {
	if !s.has(e.Task) || !s.isAsked(e.Task, expansion) {
		return
	}
	rec := s.tasks[e.Task]
	switch {
	case e.Broken:
		s.fail(e.Task, v1.ReasonSystem, e.Err)
	case e.Err != "":
		s.fail(e.Task, v1.ReasonFanOut, e.Err)
	case e.Count <= 0:
		rec.State, rec.Reason, rec.Error, rec.ExitCode = v1.TaskCompleted, "", "", 0
		s.finish(e.Task, rec)
	case e.Partitioned:
		s.progress[e.Task].asked = nothing
		s.addGroup(group{task: e.Task, from: e.From, count: e.Count, partitioned: true})
		rec.State, rec.Reason, rec.Error = v1.TaskRunning, "", ""
		rec.Claim++
		s.set(e.Task, rec)
	default:
		s.progress[e.Task].asked = nothing
		g := group{task: e.Task, first: len(s.tasks), from: e.From, count: e.Count, open: e.Count}
		s.addGroup(g)
		// The claims of a task and of its instances increase together, so that claims of an earlier expansion are never used
		// again.
		claim := rec.Claim
		s.tasks = slices.Grow(s.tasks, g.count)
		rec.State, rec.Reason, rec.Error = v1.TaskRunning, "", ""
		s.set(e.Task, rec)
		s.counts[v1.TaskPending] += g.count
		s.instances(e.Task).counts[v1.TaskPending] = g.count
		for i := g.first; i < g.first+g.count; i++ {
			s.tasks = append(s.tasks, Record{State: v1.TaskPending, Claim: claim, ExitCode: -1})
			s.enqueue(i, s.tasks[i])
		}
	}
}

// begin starts a task that may start: with a request for a node, or with its instances.
func (s *State) begin(i int) {
	switch {
	case !s.graph.nodes[i].fansOut:
		s.enqueue(i, s.tasks[i])
	case s.instances(i) == nil:
		s.ask(i, expansion)
	default: // it was requeued and has its instances
		s.progress[i].asked = nothing
		rec := s.tasks[i]
		rec.State, rec.Reason, rec.Error = v1.TaskRunning, "", ""
		s.set(i, rec)
		s.startInstances(i)
	}
}

// startInstances starts the pending instances of a running task. It ends the task if nothing is left to do.
func (s *State) startInstances(task int) {
	g := *s.instances(task)
	for i := g.first; i < g.first+g.count; i++ {
		switch {
		case s.tasks[i].State != v1.TaskPending:
		case s.mayStart(i):
			s.enqueue(i, s.tasks[i])
		default:
			s.abandon(i)
		}
	}
	if g = *s.instances(task); g.open == 0 && !v1.IsTaskTerminal(s.tasks[task].State) {
		s.endGroup(task)
	}
}
