package flight

import (
	"fmt"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/definition"
	"switchyard/workflows/phrase"
)

// Tasks that share a workspace run on one node, one at a time. The first that is placed decides on the node, and the records of the
// tasks tell which one it was. A unit asks for a node once no other unit of its workspace has one or asks for one.

// workspacesOf returns the tasks of each workspace of a run.
func workspacesOf(core *dag.State) map[string][]int {
	all := map[string][]int{}
	for i := range core.Len() {
		if name := core.Definition(i).GetWorkspace(); name != "" {
			all[name] = append(all[name], i)
		}
	}
	return all
}

// sharers returns the tasks of the workspace of a task, with itself. It returns none if the task has no workspace.
func (s *State) sharers(i int) []int { return s.workspaces[s.core.Definition(i).GetWorkspace()] }

// request asks for a node for a unit, unless another unit uses its workspace.
func (s *State) request(u *Unit) {
	for _, i := range s.sharers(u.Lead) {
		other := s.units[i]
		if other != nil && other != u && (other.isRequested && other.Phase == Waiting || other.Phase == Placed || other.hasAttempt()) {
			s.showWait(u, phrase.WorkspaceWait(s.core.Definition(u.Lead).GetWorkspace(), s.core.Name(i)))
			return
		}
	}
	u.isRequested = true
	s.requests = append(s.requests, u.Lead)
}

// freeWorkspace lets the next unit that waits for the workspace of a unit ask for a node.
func (s *State) freeWorkspace(u *Unit) {
	for _, i := range s.sharers(u.Lead) {
		if other := s.units[i]; other != nil && other.Phase == Waiting && !other.isRequested {
			s.showWait(other, "")
			s.request(other)
		}
	}
}

// placedWorkspace returns which node has the workspace of a task, or nil if none has it.
func (s *State) placedWorkspace(i int) *historyv1.PlacedWorkspace {
	for _, user := range s.sharers(i) {
		if rec := s.core.Task(user); usesWorkspace(rec) {
			return &historyv1.PlacedWorkspace{Name: s.core.Definition(i).GetWorkspace(), Node: rec.Node, Task: s.core.Name(user)}
		}
	}
	return nil
}

// usesWorkspace reports whether the workspace of a task is on the node of its record. An attempt that was lost with its node does not
// count.
func usesWorkspace(rec dag.Record) bool {
	state, reason := rec.State, rec.Reason
	if !v1.IsTaskTerminal(state) && !v1.IsTaskDispatched(state) {
		state, reason = rec.Failure.State, rec.Failure.Reason
	}
	switch {
	case rec.Node == "", state == "", state == v1.TaskSkipped, state == v1.TaskLost:
		return false
	}
	return reason != v1.ReasonNodeLost && reason != v1.ReasonLeaseLost
}

// addWorkspace adds to a request what follows from the workspace of the task: the node that has it or, before there is one, what all
// its tasks need.
func (s *State) addWorkspace(req *historyv1.TaskRequest, i int) {
	if req.Workspace = s.placedWorkspace(i); req.Workspace != nil {
		req.PlacementTimeout = definition.WorkspaceTimeout(s.Input.GetOptions().GetPlacementTimeout())
		return
	}
	for _, other := range s.sharers(i) {
		definition.AddNeeds(req, s.core.Definition(other))
	}
}

// WorkspaceOf returns the workspace with which an attempt of a task starts, or nil if it has none.
func (s *State) WorkspaceOf(i int) *historyv1.TaskWorkspace {
	w := &historyv1.TaskWorkspace{Name: s.core.Definition(i).GetWorkspace()}
	if w.Name == "" {
		return nil
	}
	for _, other := range s.sharers(i) {
		w.Used = w.Used || s.core.Task(other).State == v1.TaskCompleted
	}
	return w
}

// giveUp returns the event that a task gets no node, for a reason of the placement queue.
func (s *State) giveUp(i int, why string) dag.GaveUp {
	e := dag.GaveUp{Task: i, Claim: s.claimOf(i), Reason: definition.PlacementReason(s.core.Definition(i)), Error: why}
	if w := s.placedWorkspace(i); w != nil {
		e.Reason = v1.ReasonWorkspace
		e.Error = fmt.Sprintf("workspace %s is on node %s, which task %s has used: %s; `switchyard runs retry` runs the tasks of the workspace again", w.GetName(), w.GetNode(), w.GetTask(), why)
	}
	return e
}
