package workflows

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// wholeRun stands for the task of an event of the run itself.
	wholeRun = -1
	// maxDetailBytes bounds the detail of an event, and each text in its data.
	maxDetailBytes = 300
	// keptUnstored is how many times Limits.UnstoredEvents are kept while the store
	// takes none; then the run waits for it.
	keptUnstored = 4
)

// happening is an event as it is kept: small, because a run has some for each task.
type happening struct {
	at             int64 // nanoseconds since 1970
	event          string
	node, detail   string
	task           int32 // index, or wholeRun
	attempt, claim int32
	data           []fact
}

// eventLog holds what has happened in a run and is not stored yet, in the order
// in which the run learned of it.
type eventLog struct {
	name    func(task int) string
	id      func(number int64) string
	first   int64 // number of the oldest that is kept
	parts   int32 // stored before
	kept    []happening
	tryNext int // number of events at which storing them is tried next
}

func (l *eventLog) add(at time.Time, event string, task int, node string, attempt, claim int32, detail string, data ...fact) {
	l.kept = append(l.kept, happening{
		at: at.UnixNano(), event: event, task: int32(task), node: node, attempt: attempt, claim: claim,
		detail: boundedText(detail), data: boundedFacts(data),
	})
}

func boundedText(text string) string {
	if len(text) > maxDetailBytes {
		return strings.ToValidUTF8(text[:maxDetailBytes], "")
	}
	return text
}

// message returns the event with an index among those that are kept.
func (l *eventLog) message(i int) *v1.Event {
	h := l.kept[i]
	e := &v1.Event{
		Id: l.id(l.first + int64(i)),
		At: timestamppb.New(time.Unix(0, h.at)), Event: h.event, Node: h.node,
		Attempt: h.attempt, Claim: h.claim, Detail: h.detail, Data: structOfFacts(h.data),
	}
	if h.task != wholeRun {
		e.Task = l.name(int(h.task))
	}
	return e
}

// answer answers the query for the events that are not stored. It changes nothing.
func (l *eventLog) answer(req *v1.EventsRequest) (*v1.EventsResponse, error) {
	from := int(req.GetOffset())
	if from < 0 {
		return nil, fmt.Errorf("offset %d is negative", from)
	}
	res := &v1.EventsResponse{Parts: l.parts}
	size := 0
	for i := from; i < len(l.kept); i++ {
		e := l.message(i)
		if size += proto.Size(e) + 4; size > maxAnswerBytes && len(res.Events) > 0 {
			res.More = true
			break
		}
		res.Events = append(res.Events, e)
	}
	return res, nil
}

// unstored is the next part to store.
func (l *eventLog) unstored(run string, generation int32) *v1.SaveEventsRequest {
	req := &v1.SaveEventsRequest{RunId: run, Generation: generation, Part: l.parts, Events: make([]*v1.Event, len(l.kept))}
	for i := range l.kept {
		req.Events[i] = l.message(i)
	}
	return req
}

func (r *run) unstoredEvents() *v1.SaveEventsRequest {
	req := r.log.unstored(r.self, r.in.GetGeneration())
	req.Chain = r.selfChain
	return req
}

// saved says that the oldest n events are stored as the next part.
func (l *eventLog) saved(n int) {
	l.parts++
	l.first += int64(n)
	l.kept = append([]happening(nil), l.kept[n:]...) // lets go of the memory
	l.tryNext = 0
}

// saveEvents stores the events when there are many. Until there are too many to keep, the
// run does not wait for a store that takes none: it tries again after some more.
func (r *run) saveEvents() {
	n, limit := len(r.log.kept), r.limits.UnstoredEvents
	switch {
	case n <= limit:
	case n > keptUnstored*limit:
		_ = r.flushEvents() // a cancellation comes first
	case n > r.log.tryNext:
		if r.try("save events", names.SaveEventsActivity, nil, r.unstoredEvents()) == nil {
			r.log.saved(n)
		} else {
			r.log.tryNext = n + limit/4
		}
	}
}

// flushEvents stores the events that are not stored yet. The error is that of mustNow.
func (r *run) flushEvents() error {
	n := len(r.log.kept)
	if n == 0 {
		return nil
	}
	err := r.mustNow("save its events", names.SaveEventsActivity, nil, r.unstoredEvents())
	if err == nil {
		r.log.saved(n)
	}
	return err
}
