package flight

import (
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// Kind is how the activity of an attempt has ended.
type Kind int

// These are the kinds of an [Answer].
const (
	Answered    Kind = iota // the node has answered
	NotPickedUp             // the node did not take the attempt
	Silent                  // its heartbeats stopped
	Overdue                 // the node did not end the attempt in time
	Cancelled               // the activity was cancelled before the node answered
	Broken                  // the activity failed
	Unreadable              // the answer could not be decoded
)

// Answer is what is known when the activity of an attempt has ended.
type Answer struct {
	Kind Kind
	// Response is never nil. Of a kind other than Answered, it holds what the members of a batch had recorded, if anything.
	Response *historyv1.ExecuteResponse
	// Beat is the last heartbeat, never nil. It is empty unless a time-out has ended the activity.
	Beat *historyv1.ExecuteProgress
	// Progress is what the last heartbeat tells about the members of a batch; nil or empty if nothing.
	Progress *historyv1.ExecuteResponse
	Text     string // the error of Broken and Unreadable
	Final    bool   // whether what was Broken would break again
}

// TimedOut reports whether a time-out has ended the activity.
func (a Answer) TimedOut() bool {
	return a.Kind == NotPickedUp || a.Kind == Silent || a.Kind == Overdue
}

// IsCutOff reports whether a started attempt was lost because its heartbeats stopped or its lease expired. Its node may have
// recorded a result.
func (a Answer) IsCutOff() bool {
	if a.Kind == Answered {
		return a.Response.GetState() == v1.AttemptMoved && a.Response.GetReason() == v1.ReasonLeaseLost
	}
	return a.Kind == Silent && a.Beat.GetSpawned()
}
