package paging

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
)

func FuzzTokens(f *testing.F) {
	const l = List("tasks")
	f.Add("")
	f.Add(l.EncodeTask("run-1", "task"))
	f.Add(l.EncodeRun(Position{Start: time.Unix(1, 2).UTC(), RunID: "x"}))
	f.Fuzz(func(t *testing.T, token string) {
		if task, err := l.DecodeTask(token, "run-1"); err == nil && token != "" {
			if again, err := l.DecodeTask(l.EncodeTask("run-1", task), "run-1"); err != nil || again != task {
				t.Errorf("%q became %q, %v", task, again, err)
			}
		}
		if p, err := l.DecodeRun(token); err == nil && token != "" {
			if again, err := l.DecodeRun(l.EncodeRun(*p)); err != nil || !again.Start.Equal(p.Start) || again.RunID != p.RunID {
				t.Errorf("%v became %v, %v", p, again, err)
			}
		}
	})
}

// mustListOf returns the list that a request pages through, or fails the test.
func mustListOf(t *testing.T, req proto.Message) List {
	t.Helper()
	l, err := ListOf(req)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestListIgnoresPageFieldsOfTheRequest(t *testing.T) {
	first := mustListOf(t, &v1.ListRunEventsRequest{Id: "ci", Task: "build", PageSize: 10})
	later := timestamppb.New(time.Unix(1, 0))
	if same := mustListOf(t, &v1.ListRunEventsRequest{Id: "last", Task: "build", PageSize: 20, PageToken: "x", Since: later, Until: later}); same != first {
		t.Errorf("another page is of %s, want %s", same, first)
	}
	for _, other := range []proto.Message{
		&v1.ListRunEventsRequest{Id: "ci", Task: "test"}, &v1.ListRunEventsRequest{Id: "ci"}, &v1.ListRunEventsRequest{Id: "ci", Task: "build", Event: "failed"}, &v1.ListInstancesRequest{Id: "ci", Task: "build"},
		&v1.ListRunsRequest{}, &v1.ListDeadLettersRequest{}, &v1.ListRunsRequest{State: "failed"}, &v1.ListBlobsRequest{Prefix: "runs/ci-0k/"},
	} {
		if mustListOf(t, other) == first {
			t.Errorf("%T %v is the same list", other, other)
		}
	}
}
