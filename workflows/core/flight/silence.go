package flight

import (
	"slices"
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/phrase"
)

// The attempts of a cancelled run are stopped with the next heartbeats of their nodes. A node that is silent hears of it only when it is
// back, so `finally` does not wait for its attempts.

// findSilentPause is the wait before each look for silent nodes. A node that lives stops its attempts sooner.
const findSilentPause = 15 * time.Second

// ExcuseSilent lets `finally` begin if all that is left of the other tasks was cancelled and runs on nodes that are silent. Their locks
// stay held. While other attempts are left, it looks for silent nodes from time to time.
func (s *State) ExcuseSilent() []Effect {
	if !s.core.Cancelled() || !s.core.HasFinally() || s.core.InFinally() {
		return nil
	}
	left := s.leftOfTasks()
	if !slices.ContainsFunc(left, func(i int) bool { return !s.isExcused(i) }) {
		for _, i := range left {
			if u, own := s.units[i], s.records.At(i); own.Silent == "" && own.Away == "" {
				own.Silent = phrase.Silence(u.Node, s.silentSince[u.Node])
				s.do(Show{Task: i, Event: v1.EventSilent, Text: own.Silent})
			}
		}
		s.do(Raise{dag.BeginFinally{}})
		return s.take()
	}
	if !s.isSeekingSilent && slices.ContainsFunc(left, func(i int) bool { return s.AttemptOf(i) != nil }) {
		s.isSeekingSilent = true
		s.do(After{findSilentPause, "look for silent nodes", Timer{kind: silenceTimer}})
	}
	return s.take()
}

// leftOfTasks returns the tasks outside of `finally`, and instances of them, that have not ended.
func (s *State) leftOfTasks() (left []int) {
	for i := range s.core.Len() {
		if _, instances := s.core.Instances(i); !s.core.IsFinally(i) && instances == 0 && !v1.IsTaskTerminal(s.core.Task(i).State) {
			left = append(left, i)
		}
	}
	return left
}

// isExcused reports whether `finally` need not wait for a task, because its node is silent.
func (s *State) isExcused(i int) bool {
	if own := s.records.Of(i); own.Silent != "" || own.Away != "" {
		return true
	}
	u := s.AttemptOf(i)
	return u != nil && !s.silentSince[u.Node].IsZero()
}

// findSilent looks for silent nodes among those of the attempts that are left.
func (s *State) findSilent() {
	var nodes []string
	for _, i := range s.leftOfTasks() {
		if u := s.AttemptOf(i); u != nil {
			nodes = append(nodes, u.Node)
		}
	}
	slices.Sort(nodes)
	s.isSeekingSilent = len(nodes) > 0
	if s.isSeekingSilent {
		s.do(FindSilent{slices.Compact(nodes)})
	}
}

// FoundSilent records since when nodes are silent. Those that are not named are not.
func (s *State) FoundSilent(since map[string]time.Time) []Effect {
	s.isSeekingSilent, s.silentSince = false, since
	return []Effect{Wake{}}
}
