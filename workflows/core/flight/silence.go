package flight

import (
	"cmp"
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
	if !slices.ContainsFunc(left, func(i int) bool { return s.SilenceOf(i) == "" }) {
		for _, i := range left {
			if own := s.records.Of(i); own.Silent == "" && own.Away == "" {
				s.do(Show{Task: i, Event: v1.EventSilent, Text: s.SilenceOf(i)})
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

// SilenceOf returns since when the node of a task has been silent, or "" if it is not known to be.
func (s *State) SilenceOf(i int) string {
	own, u := s.records.Of(i), s.AttemptOf(i)
	switch {
	case own.Silent != "" || own.Away != "":
		return cmp.Or(own.Silent, own.Away)
	case u == nil || s.silentSince[u.Node].IsZero():
		return ""
	}
	return phrase.Silence(u.Node, s.silentSince[u.Node])
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
