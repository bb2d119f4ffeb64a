package flight

import (
	"cmp"
	"slices"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
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
	if !s.isSeekingSilent && slices.ContainsFunc(left, func(i int) bool { return len(s.nodesOf(i)) > 0 }) {
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

// LeftOn returns the nodes of the attempts that are left, sorted, if the run was cancelled and nothing else is left of its tasks.
func (s *State) LeftOn() (nodes []string) {
	if !s.core.Cancelled() {
		return nil
	}
	for _, i := range s.leftOfTasks() {
		on := s.nodesOf(i)
		if len(on) == 0 {
			return nil
		}
		nodes = append(nodes, on...)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// LeftOnIn returns the nodes of the attempts that are left in partitions, sorted, if all open ones were cancelled and nothing else is left of them.
func LeftOnIn(partitions []*historyv1.PartitionReport) (nodes []string) {
	for _, p := range partitions {
		switch {
		case p.GetOver():
		case len(p.GetLeftOn()) == 0:
			return nil
		default:
			nodes = append(nodes, p.GetLeftOn()...)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// nodesOf returns the nodes of the attempts that are left of a task. There are several if its instances run in partitions.
func (s *State) nodesOf(i int) []string {
	if u := s.AttemptOf(i); u != nil {
		return []string{u.Node}
	}
	return s.records.Of(i).LeftOn
}

// SilenceOf returns since when the node of a task, or the first of its nodes, has been silent, or "" unless all of them are known to be.
func (s *State) SilenceOf(i int) (silence string) {
	if own := s.records.Of(i); own.Silent != "" || own.Away != "" {
		return cmp.Or(own.Silent, own.Away)
	}
	for _, node := range s.nodesOf(i) {
		since := s.silentSince[node]
		if since.IsZero() {
			return ""
		}
		silence = cmp.Or(silence, phrase.Silence(node, since))
	}
	return silence
}

// findSilent looks for silent nodes among those of the attempts that are left.
func (s *State) findSilent() {
	var nodes []string
	for _, i := range s.leftOfTasks() {
		nodes = append(nodes, s.nodesOf(i)...)
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
