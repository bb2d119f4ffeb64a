package gateway

import (
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

func FuzzTokens(f *testing.F) {
	const l = list("tasks")
	f.Add("")
	f.Add(l.encodeTask("run-1", "task"))
	f.Add(l.encodeRun(position{start: time.Unix(1, 2).UTC(), runID: "x"}))
	f.Add(l.encodeRunEvent(runEventPlace{run: "run-1", position: position{start: time.Unix(1, 2).UTC(), runID: "x"}, at: &eventPlace{Part: 1}}))
	f.Fuzz(func(t *testing.T, token string) {
		if task, err := l.decodeTask(token, "run-1"); err == nil && token != "" {
			if again, err := l.decodeTask(l.encodeTask("run-1", task), "run-1"); err != nil || again != task {
				t.Errorf("%q became %q, %v", task, again, err)
			}
		}
		if p, err := l.decodeRun(token); err == nil && token != "" {
			if again, err := l.decodeRun(l.encodeRun(*p)); err != nil || !again.start.Equal(p.start) || again.runID != p.runID {
				t.Errorf("%v became %v, %v", p, again, err)
			}
		}
		if p, err := l.decodeRunEvent(token); err == nil && token != "" {
			if again, err := l.decodeRunEvent(l.encodeRunEvent(*p)); err != nil || l.encodeRunEvent(*again) != l.encodeRunEvent(*p) {
				t.Errorf("%v became %v, %v", p, again, err)
			}
		}
	})
}

// pagesOf is the list that a request asks for a page of.
func pagesOf(t *testing.T, req proto.Message) list {
	t.Helper()
	l, err := listOf(req)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestListIsTheRequestButForThePage(t *testing.T) {
	first := pagesOf(t, &v1.ListRunEventsRequest{Id: "ci", Task: "build", PageSize: 10})
	later := timestamppb.New(time.Unix(1, 0))
	if same := pagesOf(t, &v1.ListRunEventsRequest{Id: "last", Task: "build", PageSize: 20, PageToken: "x", Since: later, Until: later}); same != first {
		t.Errorf("another page is of %s, want %s", same, first)
	}
	for _, other := range []proto.Message{
		&v1.ListRunEventsRequest{Id: "ci", Task: "test"}, &v1.ListRunEventsRequest{Id: "ci"}, &v1.ListRunEventsRequest{Id: "ci", Task: "build", Event: "failed"}, &v1.ListInstancesRequest{Id: "ci", Task: "build"},
		&v1.ListRunsRequest{}, &v1.ListDeadLettersRequest{}, &v1.ListRunsRequest{State: "failed"}, &v1.ListBlobsRequest{Prefix: "runs/ci-0k/"},
	} {
		if pagesOf(t, other) == first {
			t.Errorf("%T %v is the same list", other, other)
		}
	}
}

// TestTokenOfOneListIsNoneOfAnother sends tokens of runs, by name or state, of dead letters and of keys around.
func TestTokenOfOneListIsNoneOfAnother(t *testing.T) {
	t.Parallel()
	f := start(t)
	blobs := switchyardv1connect.NewBlobServiceClient(http.DefaultClient, f.server.URL())
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	place := position{start: time.Unix(1, 0), runID: "x"}
	tokens := map[string]string{
		"all runs":            pagesOf(t, &v1.ListRunsRequest{}).encodeRun(place),
		"failed runs":         pagesOf(t, &v1.ListRunsRequest{State: "failed"}).encodeRun(place),
		"runs of ci":          pagesOf(t, &v1.ListRunsRequest{Name: "ci"}).encodeRun(place),
		"dead letters":        pagesOf(t, &v1.ListDeadLettersRequest{}).encodeRun(place),
		"keys of one prefix":  pagesOf(t, &v1.ListBlobsRequest{Prefix: "runs/ci-0k/"}).encodeKey("runs/ci-0k/status/0"),
		"keys of its results": pagesOf(t, &v1.ListBlobsRequest{Prefix: "runs/ci-0k/results/"}).encodeKey("runs/ci-0k/results/build.0.0"),
	}
	lists := map[string]func(token string) error{
		"all runs": func(token string) error {
			_, err := f.client.ListRuns(t.Context(), connect.NewRequest(&v1.ListRunsRequest{PageToken: token, PageSize: 3}))
			return err
		},
		"failed runs": func(token string) error {
			_, err := f.client.ListRuns(t.Context(), connect.NewRequest(&v1.ListRunsRequest{PageToken: token, State: "failed"}))
			return err
		},
		"runs of ci": func(token string) error {
			_, err := f.client.ListRuns(t.Context(), connect.NewRequest(&v1.ListRunsRequest{PageToken: token, Name: "ci"}))
			return err
		},
		"dead letters": func(token string) error {
			_, err := f.client.ListDeadLetters(t.Context(), connect.NewRequest(&v1.ListDeadLettersRequest{PageToken: token}))
			return err
		},
		"keys of one prefix": func(token string) error {
			_, err := blobs.ListBlobs(t.Context(), connect.NewRequest(&v1.ListBlobsRequest{Prefix: "runs/ci-0k/", PageToken: token}))
			return err
		},
		"keys of its results": func(token string) error {
			_, err := blobs.ListBlobs(t.Context(), connect.NewRequest(&v1.ListBlobsRequest{Prefix: "runs/ci-0k/results/", PageToken: token}))
			return err
		},
	}
	for of, token := range tokens {
		for in, ask := range lists {
			if err := ask(token); of == in && err != nil || of != in && connect.CodeOf(err) != connect.CodeInvalidArgument {
				t.Errorf("a token of %s in %s: %v", of, in, err)
			}
		}
	}
}
