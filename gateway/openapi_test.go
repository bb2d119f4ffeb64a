package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"switchyard/dev/testneeds"
	"switchyard/gateway/openapi"
	"switchyard/gateway/openapi/openapitest"
)

// TestGatewayServesItsDocument checks that a gateway serves the document of its REST paths.
func TestGatewayServesItsDocument(t *testing.T) {
	t.Parallel()
	if status, text := fetch(t, start(t).server.URL()+openapi.Path); status != http.StatusOK || text != string(openapi.Document()) {
		t.Errorf("%d, %d bytes", status, len(text))
	}
}

// TestDrawnRequestsGetDocumentedAnswers sends valid, almost valid and invalid requests to each operation of the
// document. Each gets a prompt and documented response, and none breaks the gateway.
func TestDrawnRequestsGetDocumentedAnswers(t *testing.T) {
	testneeds.Checks(t, 10)
	drawnRequestsGetDocumentedAnswers(t)
}

// TestLongDrawnRequestsGetDocumentedAnswers repeats TestDrawnRequestsGetDocumentedAnswers with ten times
// as many requests.
func TestLongDrawnRequestsGetDocumentedAnswers(t *testing.T) {
	testneeds.Long(t)
	testneeds.Checks(t, 100)
	drawnRequestsGetDocumentedAnswers(t)
}

func drawnRequestsGetDocumentedAnswers(t *testing.T) {
	f := start(t)
	document, err := openapitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	id := f.submit(t, "drawn")
	deadLetter(t, id, "test", 1, "node-a")
	writeLog(t, f.config.Store, id, "build", 0, 1, "hello\n")
	known := openapitest.Known{
		"id": {id, "last"}, "run": {id}, "task": {"build", "test", "build[0]"}, "name": {"drawn"},
		"workflow": {"drawn"}, "pageToken": {""},
	}
	client := &http.Client{
		Transport:     &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(client.CloseIdleConnections)
	succeeded := map[string]bool{}
	for _, operation := range document.Operations() {
		t.Run(operation.ID, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				request := operation.Draw(rt, known)
				status, err := f.exchange(t.Context(), client, operation, request)
				if err != nil {
					rt.Fatalf("%s %s %v\n%q\n%v", request.Method, request.Target, request.Header, request.Body, err)
				}
				if status < 300 {
					succeeded[operation.ID] = true
				}
			})
		})
	}
	if len(succeeded) < 8 {
		t.Errorf("only requests of %v have succeeded: the requests are too odd to show anything", slices.Sorted(maps.Keys(succeeded)))
	}
	// The gateway still works.
	if run := f.get(t, id); run.GetName() != "drawn" {
		t.Errorf("the run is %v", run)
	}
}

// exchange sends a drawn request. It returns the status of the response and an error if the response is not as
// documented.
func (f *fixture) exchange(ctx context.Context, client *http.Client, operation *openapitest.Operation, drawn openapitest.Request) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, drawn.Method, f.server.URL()+drawn.Target, bytes.NewReader(drawn.Body))
	if err != nil {
		return 0, err
	}
	for name, value := range drawn.Header {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("no answer: %w", err)
	}
	defer response.Body.Close()
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind == "text/event-stream" {
		return response.StatusCode, operation.CheckAnswer(response.StatusCode, response.Header, nil)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, fmt.Errorf("status %d: the body does not end: %w", response.StatusCode, err)
	}
	// The machine may be busy, and the fixture lacks parts.
	allowed := []int{http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusNotImplemented}
	if response.StatusCode >= 500 && !slices.Contains(allowed, response.StatusCode) {
		return 0, fmt.Errorf("status %d: %s", response.StatusCode, body)
	}
	if err := operation.CheckAnswer(response.StatusCode, response.Header, body); err != nil {
		return 0, fmt.Errorf("%w\n%.2000s", err, body)
	}
	return response.StatusCode, nil
}
