package timeline

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
)

// Kinds of spans. A task is queued from when it could start, or from the end of its previous
// attempt, until it is assigned to a node. It then waits until the node has started it, and then
// runs.
const (
	Queue = "queue"
	Wait  = "wait"
	Run   = "run"
)

// Kinds returns the kinds of spans in the order in which a task passes through them.
func Kinds() []string { return []string{Queue, Wait, Run} }

// Span is a phase in the life of a task.
type Span struct {
	Kind     string
	From, To time.Time
	Node     string // node that had the task; "" in the queue
	Attempt  int32
	Failed   bool // whether this is a run that failed
	// Open marks a span that has not ended; To is then the current time.
	Open bool
	// Why is what the task waits for. It is zero if the task does not wait or the reason is no
	// longer known.
	Why Reason
}

// Bar is the timeline of a task or instance.
type Bar struct {
	Task  string // "each" or "each[3]"
	Node  string // node of the newest attempt
	State string
	Away  bool   // whether the task is lost only until its node is back
	Spans []Span // in order, without gaps except for pauses of the run
}

// Took returns the total duration of the spans of a kind.
func (b Bar) Took(kind string) time.Duration {
	var sum time.Duration
	for _, s := range b.Spans {
		if s.Kind == kind {
			sum += s.To.Sub(s.From)
		}
	}
	return sum
}

// BarOf returns the bar of a task that could start at ready. Open spans end at now.
func BarOf(name string, t *v1.Task, ready, now time.Time) Bar {
	b := Bar{Task: name, Node: t.GetNode(), State: t.GetState(), Away: v1.IsTaskAway(t.GetState(), t.GetNotice())}
	for _, a := range t.GetAttempts() {
		ready = b.addAttempt(ready, lived{
			assigned: a.GetAssignedAt(), started: a.GetStartedAt(), ended: a.GetCompletedAt(),
			node: a.GetNode(), number: a.GetAttempt(), failed: v1.IsTaskFailure(a.GetState()),
		}, now)
	}
	past := t.GetAttempts()
	isQueued := t.GetState() == v1.TaskQueued
	if len(past) == 0 || isNewAttempt(t, past[len(past)-1]) {
		l := lived{assigned: t.GetAssignedAt(), started: t.GetStartedAt(), node: t.GetNode(), number: t.GetAttempt(), failed: v1.HasTaskFailed(t)}
		if v1.HasTaskEnded(t) {
			l.ended = t.GetCompletedAt()
		} else {
			l.why = activeReason(t)
		}
		switch {
		case l.assigned != nil:
			b.addAttempt(b.addBackOff(t, ready, l.assigned.AsTime()), l, now)
		case isQueued:
			b.addQueued(t, ready, now)
		}
	} else if isQueued {
		b.addQueued(t, ready, now)
	}
	return b
}

// addQueued adds the current wait of a queued task.
func (b *Bar) addQueued(t *v1.Task, ready, now time.Time) {
	why, before := queueReason(t), len(b.Spans)
	if why.Word != BackOff {
		ready = b.addBackOff(t, ready, now)
		before = len(b.Spans)
	}
	b.add(Queue, ready, now, lived{})
	if len(b.Spans) > before {
		b.Spans[before].Open, b.Spans[before].Why = true, why
	}
}

// addBackOff adds the back-off of the newest attempt, if it had one between ready and until. It
// returns the end of the back-off, or ready if there was none.
func (b *Bar) addBackOff(t *v1.Task, ready, until time.Time) time.Time {
	asked := t.GetQueuedAt()
	if t.GetScheduledAfter() == nil || asked == nil || !asked.AsTime().After(ready) || asked.AsTime().After(until) {
		return ready
	}
	b.add(Queue, ready, asked.AsTime(), lived{})
	b.Spans[len(b.Spans)-1].Why.Word = BackOff
	return asked.AsTime()
}

// isNewAttempt reports whether the fields of a task describe a newer attempt than its last ended
// one. While the task is queued again, the fields still describe the old attempt.
func isNewAttempt(t *v1.Task, last *v1.Attempt) bool {
	at := t.GetAssignedAt()
	return at != nil && t.GetState() != v1.TaskQueued && !at.AsTime().Before(last.GetCompletedAt().AsTime())
}

// lived holds the times at which an attempt was assigned, started and ended. A time is nil if it
// has not come yet or is unknown.
type lived struct {
	assigned, started, ended *timestamppb.Timestamp
	node                     string
	number                   int32
	failed                   bool
	why                      Reason // why an open attempt waits
}

// addAttempt adds the spans of an attempt that could be placed from ready on, and returns its end.
func (b *Bar) addAttempt(ready time.Time, l lived, now time.Time) time.Time {
	end := now
	if l.ended != nil {
		end = l.ended.AsTime()
	}
	assigned, started := end, end
	if l.started != nil {
		started = l.started.AsTime()
		assigned = started
	}
	if l.assigned != nil {
		assigned = l.assigned.AsTime()
	}
	b.add(Queue, ready, assigned, lived{})
	b.add(Wait, assigned, started, l)
	if l.started != nil {
		b.add(Run, started, end, l)
	}
	if n := len(b.Spans); n > 0 && l.ended == nil {
		last := &b.Spans[n-1]
		last.Open, last.Why = true, l.why
		if last.Kind == Wait && last.Why.Word == "" {
			last.Why.Word = Start
		}
	}
	return end
}

func (b *Bar) add(kind string, from, to time.Time, l lived) {
	if !to.After(from) && (kind != Run || !to.Equal(from)) {
		return
	}
	b.Spans = append(b.Spans, Span{Kind: kind, From: from, To: to, Node: l.node, Attempt: l.number, Failed: kind == Run && l.failed})
}

// ReadyAt returns when a task could start: at the end of its last parent, or at the start of the
// run.
func ReadyAt(run *v1.Run, t *v1.Task) time.Time {
	ready := run.GetCreatedAt().AsTime()
	for _, name := range t.GetDependsOn() {
		if parent := run.GetTasks()[name]; parent.GetCompletedAt() != nil && parent.GetCompletedAt().AsTime().After(ready) {
			ready = parent.GetCompletedAt().AsTime()
		}
	}
	// After a retry of the run, a task may have started before the latest end of its parents.
	if first := firstSeen(t); !first.IsZero() && first.Before(ready) {
		ready = first
	}
	return ready
}

// firstSeen returns when a task was first assigned to a node, or zero if it never was.
func firstSeen(t *v1.Task) time.Time {
	times := []*timestamppb.Timestamp{t.GetAssignedAt(), t.GetStartedAt()}
	if attempts := t.GetAttempts(); len(attempts) > 0 {
		times = append(times, attempts[0].GetAssignedAt(), attempts[0].GetStartedAt())
	}
	times = slices.DeleteFunc(times, func(at *timestamppb.Timestamp) bool { return at == nil })
	if len(times) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(times, func(x, y *timestamppb.Timestamp) int { return x.AsTime().Compare(y.AsTime()) }).AsTime()
}
