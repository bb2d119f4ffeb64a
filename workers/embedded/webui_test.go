package embedded

import (
	"net/http"
	"strings"
	"testing"

	"go.temporal.io/api/serviceerror"
)

// TestWebUIAnswersToItsOwnNamesOnly acts like a page whose host name was rebound to loopback after it had loaded: it
// gets the token from the UI and starts a workflow with it.
func TestWebUIAnswersToItsOwnNamesOnly(t *testing.T) {
	t.Parallel()
	s := startTest(t, Options{UIAddress: "localhost:0", UIHosts: []string{"yard.example"}})
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	send := func(method, host, path, body string, headers map[string]string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, s.UIURL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		for name, value := range headers {
			req.Header.Set(name, value)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		return res
	}
	for host, want := range map[string]int{
		"evil.example": http.StatusForbidden, "evil.example:8233": http.StatusForbidden,
		"localhost:8233": http.StatusOK, "127.0.0.1": http.StatusOK, "yard.example": http.StatusOK,
	} {
		for _, path := range []string{"/", "/namespaces/default/workflows", "/api/v1/settings", "/api/v1/namespaces", "/api/v1/namespaces/default/workflows"} {
			res := send(http.MethodGet, host, path, "", nil)
			if res.StatusCode != want {
				t.Errorf("GET %s as %s: %s, want %d", path, host, res.Status, want)
			}
			if want == http.StatusForbidden && len(res.Cookies()) > 0 {
				t.Errorf("GET %s as %s gives away %v", path, host, res.Cookies())
			}
		}
	}
	const id, start = "rebound", `{"workflowType":{"name":"Run"},"taskQueue":{"name":"control"}}`
	res := send(http.MethodPost, "evil.example:8233", "/api/v1/namespaces/default/workflows/"+id, start, map[string]string{
		"Origin": "http://evil.example:8233", "Content-Type": "application/json", "Cookie": "_csrf=known", "X-CSRF-Token": "known",
	})
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("the start of a workflow: %s", res.Status)
	}
	_, err := dialTest(t, s).DescribeWorkflowExecution(t.Context(), id, "")
	if _, ok := err.(*serviceerror.NotFound); !ok {
		t.Errorf("the workflow is there: %v", err)
	}
}
