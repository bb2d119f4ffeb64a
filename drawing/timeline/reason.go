package timeline

import (
	"strings"

	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/phrase"
)

// Values of Reason.Word: what a task waits for.
const (
	Node     = "node"     // a node that can take it
	BackOff  = "backoff"  // the end of the back-off before its next attempt
	Held     = "held"     // a person who holds it back
	Lock     = "lock"     // a mutex or semaphore held by other attempts
	Start    = "start"    // its process on the node to start
	Approval = "approval" // the decision of a person
	Paused   = "paused"   // a person who has suspended it
	Away     = "away"     // its node, which is silent or lost
	Store    = "store"    // the store, to accept its result
)

// Reasons returns all reason words.
func Reasons() []string {
	return []string{Node, BackOff, Held, Lock, Start, Approval, Paused, Away, Store}
}

// Reason says what a task waits for.
type Reason struct {
	Word string // one of Reasons, or "" for none
	Text string // detail in one line; may be empty
}

var reasonTexts = map[string]string{
	Node: "waits for a node", BackOff: "waits before its next attempt", Held: "held back", Lock: "waits for a lock", Start: "waits for its start",
	Approval: "waits for approval", Paused: "suspended", Away: "waits for its node", Store: "waits for the store",
}

// Label describes a reason word.
func Label(word string) string { return reasonTexts[word] }

// String describes the reason, such as "waits for a node: 0 of 2 nodes have 2 free GPUs".
func (r Reason) String() string {
	if r.Word == Lock && r.Text != "" {
		return r.Text // the text names the lock
	}
	return words.JoinNote(Label(r.Word), r.Text)
}

// queueReason returns what a queued task waits for.
func queueReason(t *v1.Task) Reason {
	text, _, _ := strings.Cut(t.GetError(), "\n")
	text = words.OneLine(text)
	switch {
	case t.GetHeld():
		return Reason{Held, text}
	case phrase.IsLockWait(text):
		return Reason{Lock, text}
	case t.GetScheduledAfter() != nil && t.GetQueuedAt() == nil:
		return Reason{BackOff, text}
	}
	return Reason{Node, text}
}

// activeReason returns what an open attempt waits for, or a zero Reason if it is not known to wait.
func activeReason(t *v1.Task) Reason {
	text, _, _ := strings.Cut(t.GetError(), "\n")
	text = words.OneLine(text)
	switch {
	case t.GetState() == v1.TaskPaused && t.GetReason() == v1.ReasonApproval:
		return Reason{Approval, text}
	case t.GetState() == v1.TaskPaused:
		return Reason{Paused, text}
	case t.GetNotice() == phrase.StoreWait:
		return Reason{Store, words.OneLine(t.GetNotice())}
	case t.GetNotice() != "":
		return Reason{Away, words.OneLine(t.GetNotice())}
	}
	return Reason{}
}
