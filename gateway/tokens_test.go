package gateway

import (
	"net/http"
	"testing"
	"time"

	"switchyard/gateway/paging"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
)

// pagesOf returns the list that a request pages through.
func pagesOf(t *testing.T, req proto.Message) paging.List {
	t.Helper()
	l, err := paging.ListOf(req)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestPageTokenIsBoundToItsList checks that the page token of one list is rejected by every other list:
// those of runs, by name or state, of dead letters and of keys.
func TestPageTokenIsBoundToItsList(t *testing.T) {
	t.Parallel()
	f := start(t)
	blobs := switchyardv1connect.NewBlobServiceClient(http.DefaultClient, f.server.URL())
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	place := paging.Position{Start: time.Unix(1, 0), RunID: "x"}
	tokens := map[string]string{
		"all runs":            pagesOf(t, &v1.ListRunsRequest{}).EncodeRun(place),
		"failed runs":         pagesOf(t, &v1.ListRunsRequest{State: "failed"}).EncodeRun(place),
		"runs of ci":          pagesOf(t, &v1.ListRunsRequest{Name: "ci"}).EncodeRun(place),
		"dead letters":        pagesOf(t, &v1.ListDeadLettersRequest{}).EncodeRun(place),
		"keys of one prefix":  pagesOf(t, &v1.ListBlobsRequest{Prefix: "runs/ci-0k/"}).EncodeKey("runs/ci-0k/status/0"),
		"keys of its results": pagesOf(t, &v1.ListBlobsRequest{Prefix: "runs/ci-0k/results/"}).EncodeKey("runs/ci-0k/results/build.0.0"),
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
