package notification

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
)

// Patience is how long the delivery of a message is tried.
const Patience = 24 * time.Hour

// The wait before a message is tried again doubles with each failure.
const (
	firstWait   = time.Second
	longestWait = 10 * time.Minute
)

// Wait returns how long a message waits for its next try, after a failure that had the given number of failures before it.
func Wait(failures int) time.Duration {
	return min(firstWait<<min(failures, 20), longestWait)
}

// maxDetail is the maximum length of the detail of an event, in bytes.
const maxDetail = 300

// Outcome is what became of one try to tell a target about an event.
type Outcome struct {
	// Target is empty if the targets could not be found out.
	Target, Event string
	// Answer is what the receiver answered, and Err why it was not told; one of them is set.
	Answer string
	Err    error
	// IsLast is true if no other try follows a failure.
	IsLast bool
}

// Message returns the outcome as an event of the run.
func (o Outcome) Message(at time.Time) *v1.Event {
	e := &v1.Event{At: timestamppb.New(at), Event: v1.EventNotified, Detail: fmt.Sprintf("%s was told of %s: %s", o.Target, o.Event, o.Answer)}
	if o.Err != nil {
		next := "it is tried again"
		if o.IsLast {
			next = "it is given up"
		}
		who := o.Target + " was not told"
		if o.Target == "" {
			who = "no target was told"
		}
		e.Event, e.Detail = v1.EventNotifyFailed, fmt.Sprintf("%s of %s (%s): %v", who, o.Event, next, o.Err)
	}
	e.Detail = Cut(e.GetDetail(), maxDetail)
	return e
}
