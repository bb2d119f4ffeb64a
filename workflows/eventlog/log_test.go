package eventlog

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func newTestLog() *Log {
	return New(
		func(task int) string { return fmt.Sprintf("t%d", task) },
		func(number int64) string { return fmt.Sprintf("0-%d", number) },
	)
}

// However many events there are, answers stay small and together hold each event once and in order.
func TestEventsInAnswers(t *testing.T) {
	t.Parallel()
	l := newTestLog()
	const n = 3000
	for i := range n {
		l.Add(time.Unix(int64(i), 0), v1.EventFailed, i%3, "a-node", int32(i), int32(i+1), strings.Repeat("é", 200))
	}
	var events []*v1.Event
	for answers := 1; ; answers++ {
		res, err := l.Answer(&historyv1.EventsRequest{Offset: int32(len(events))})
		if err != nil {
			t.Fatal(err)
		}
		if size := proto.Size(res); size > MaxAnswerBytes+1000 || len(res.GetEvents()) == 0 {
			t.Fatalf("an answer with %d events of %d bytes", len(res.GetEvents()), size)
		}
		events = append(events, res.GetEvents()...)
		if !res.GetMore() {
			if answers < 2 {
				t.Error("all of it came in one answer")
			}
			break
		}
	}
	if len(events) != n {
		t.Fatalf("%d events", len(events))
	}
	for i, e := range events {
		if e.GetAttempt() != int32(i) || e.GetTask() != fmt.Sprintf("t%d", i%3) || len(e.GetDetail()) > maxDetailBytes || e.GetAt().GetSeconds() != int64(i) {
			t.Fatalf("event %d is %v", i, e)
		}
	}
	if res, err := l.Answer(&historyv1.EventsRequest{Offset: n + 5}); err != nil || len(res.GetEvents()) > 0 || res.GetMore() {
		t.Errorf("beyond the end: %v %v", res, err)
	}
	if _, err := l.Answer(&historyv1.EventsRequest{Offset: -1}); err == nil {
		t.Error("a negative offset was taken")
	}
}

// Stored events are dropped, and events added meanwhile are kept.
func TestStoredEventsAreDropped(t *testing.T) {
	t.Parallel()
	l := newTestLog()
	for i := range 5 {
		l.Add(time.Unix(int64(i), 0), v1.EventQueued, 0, "", 0, int32(i), "")
	}
	part := l.Unstored("r-1", 2)
	if part.GetSlice() != 0 || part.GetGeneration() != 2 || part.GetRunId() != "r-1" || len(part.GetEvents()) != 5 {
		t.Errorf("part %v", part)
	}
	l.Add(time.Unix(9, 0), v1.EventCompleted, WholeRun, "", 0, 0, "")
	l.DropStored(5)
	res, err := l.Answer(&historyv1.EventsRequest{})
	if err != nil || res.GetSlices() != 1 || len(res.GetEvents()) != 1 || res.GetEvents()[0].GetEvent() != v1.EventCompleted || res.GetEvents()[0].GetTask() != "" {
		t.Errorf("%v %v", res, err)
	}
}
