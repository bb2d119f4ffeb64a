package flight

import (
	"slices"

	v1 "switchyard/proto/switchyard/v1"
)

// Step is what follows when the activity of an attempt has ended.
type Step int

// These are the steps.
const (
	Ends        Step = iota // the attempt ends with this answer
	GoesAway                // it may still run on a node that is away; the node is asked for it
	RunsOn                  // its node has detached it, and it runs without an activity
	IsStopped               // it runs detached, and the run asks its node to stop it
	Expires                 // it may run detached until its lease is over
	IsLookedFor             // it may have ended without an answer; its node may have recorded the result
)

// Next returns what follows when the activity of an attempt has ended. hasLease reports whether an earlier detachment lets the
// attempt run on now.
func (a Attempt) Next(answer Answer, hasLease bool) Step {
	isStopped := slices.ContainsFunc(a.Members, func(m Member) bool { return m.Stopped })
	isAnswered := answer.Kind == Answered
	switch {
	case answer.TimedOut() && a.Lasting && !isStopped && (answer.Beat.GetSpawned() || a.Members[0].Running):
		return GoesAway
	case isAnswered && answer.Response.GetState() == v1.AttemptDetached:
		return RunsOn
	case hasLease && answer.Kind == Cancelled: // before the node received the activity
		return IsStopped
	case hasLease && (answer.TimedOut() || answer.Response.GetState() == v1.TaskLost):
		return Expires
	}
	return a.AtRest(answer)
}

// AtRest returns what follows when the activity of an attempt has ended, and nothing of the attempt runs detached.
func (a Attempt) AtRest(answer Answer) Step {
	isStopped := slices.ContainsFunc(a.Members, func(m Member) bool { return m.Stopped })
	// A node that answers has released a remote attempt and has not started a long-lived one.
	if !answer.IsCutOff() || isStopped || answer.Kind == Answered && (a.Remote || a.Lasting) {
		return Ends
	}
	return IsLookedFor
}
