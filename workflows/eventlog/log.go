package eventlog

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// WholeRun is the task index of an event about the run itself.
	WholeRun = -1
	// maxDetailBytes is the maximum length of an event's detail, and of each text in its data.
	maxDetailBytes = 300
	// MaxAnswerBytes is the maximum size of the events or tasks in one answer to a query. Temporal carries 2 MB, and as JSON
	// one byte of output may take six.
	MaxAnswerBytes = 256 << 10
)

// record is an event in the compact form of the log, because a run has several for each task.
type record struct {
	at             int64 // nanoseconds since 1970
	event          string
	node, detail   string
	task           int32 // task index, or WholeRun
	attempt, claim int32
	data           []Fact
}

// Log holds the events of a run that are not stored yet, in the order in which the run observed them.
type Log struct {
	// RetryAt is the number of events at which the log is stored again after a failure, or 0 if the last attempt did not fail.
	RetryAt int

	name  func(task int) string
	id    func(number int64) string
	first int64 // number of the oldest event in memory
	parts int32 // number of parts already stored
	kept  []record
}

// New returns an empty log. name returns the name of a task by its index, and id the ID of an event by its number.
func New(name func(task int) string, id func(number int64) string) *Log {
	return &Log{name: name, id: id}
}

// Len returns the number of events that are not stored.
func (l *Log) Len() int { return len(l.kept) }

// StoredParts returns the number of stored parts.
func (l *Log) StoredParts() int32 { return l.parts }

// Next returns the number of the next event.
func (l *Log) Next() int64 { return l.first + int64(len(l.kept)) }

// ContinueFrom sets the number of stored parts and the number of the first event after them.
func (l *Log) ContinueFrom(parts int32, first int64) { l.parts, l.first = parts, first }

// Add adds an event about a task, or about the run itself for WholeRun. Long texts and lists are cut.
func (l *Log) Add(at time.Time, event string, task int, node string, attempt, claim int32, detail string, data ...Fact) {
	l.kept = append(l.kept, record{
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

// message returns the i-th event in memory as a message.
func (l *Log) message(i int) *v1.Event {
	h := l.kept[i]
	e := &v1.Event{
		Id: l.id(l.first + int64(i)),
		At: timestamppb.New(time.Unix(0, h.at)), Event: h.event, Node: h.node,
		Attempt: h.attempt, Claim: h.claim, Detail: h.detail, Data: structOfFacts(h.data),
	}
	if h.task != WholeRun {
		e.Task = l.name(int(h.task))
	}
	return e
}

// Answer answers the query for events that are not stored. It does not modify the log.
func (l *Log) Answer(req *historyv1.EventsRequest) (*historyv1.EventsResponse, error) {
	from := int(req.GetOffset())
	if from < 0 {
		return nil, fmt.Errorf("offset %d is negative", from)
	}
	res := &historyv1.EventsResponse{Slices: l.parts}
	size := 0
	for i := from; i < len(l.kept); i++ {
		e := l.message(i)
		if size += proto.Size(e) + 4; size > MaxAnswerBytes && len(res.Events) > 0 {
			res.More = true
			break
		}
		res.Events = append(res.Events, e)
	}
	return res, nil
}

// Unstored returns the request that stores the next part.
func (l *Log) Unstored(run string, generation int32) *historyv1.SaveEventsRequest {
	req := &historyv1.SaveEventsRequest{RunId: run, Generation: generation, Slice: l.parts, Events: make([]*v1.Event, len(l.kept))}
	for i := range l.kept {
		req.Events[i] = l.message(i)
	}
	return req
}

// DropStored drops the oldest n events, which have been stored as the next part.
func (l *Log) DropStored(n int) {
	l.parts++
	l.first += int64(n)
	l.kept = append([]record(nil), l.kept[n:]...) // releases the memory
	l.RetryAt = 0
}
