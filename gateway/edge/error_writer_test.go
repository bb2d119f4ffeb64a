package edge

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestGuardsAnswerInTheProtocolOfTheCaller checks the form of errors that occur before any handler.
func TestGuardsAnswerInTheProtocolOfTheCaller(t *testing.T) {
	none := NewBounds(Limits{}, 0) // admits no call
	for _, guard := range []struct {
		handler http.Handler
		status  int
		code    string
	}{
		{GuardHosts(nil, nil, http.NotFoundHandler()), http.StatusForbidden, "permission_denied"},
		{none.Protect(http.NotFoundHandler()), http.StatusTooManyRequests, "resource_exhausted"},
	} {
		for name, headers := range map[string]map[string]string{
			"JSON":            {"Content-Type": "application/json"},
			"curl -d":         {"Content-Type": "application/x-www-form-urlencoded"},
			"text of a page":  {"Content-Type": "text/plain"},
			"YAML":            {"Content-Type": "application/yaml"},
			"Connect":         {"Content-Type": "application/json", "Connect-Protocol-Version": "1"},
			"proto of a page": {"Content-Type": "application/proto"},
			"gRPC":            {"Content-Type": "application/grpc"},
		} {
			r := httptest.NewRequest(http.MethodPost, "/v1/runs", strings.NewReader(`{"workflow":"nightly"}`))
			r.Header.Set("Origin", "https://evil.example")
			for key, value := range headers {
				r.Header.Set(key, value)
			}
			w := httptest.NewRecorder()
			guard.handler.ServeHTTP(w, r)
			if name == "gRPC" {
				if w.Code != http.StatusOK || w.Header().Get("Grpc-Status") == "" {
					t.Errorf("%s: %d %v", name, w.Code, w.Header())
				}
				continue
			}
			var body struct{ Code, Message string }
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != guard.status || body.Code != guard.code || body.Message == "" {
				t.Errorf("%s: %d %s, %v", name, w.Code, w.Body, err)
			}
			if hasDetails := strings.Contains(w.Body.String(), `"details":[]`); hasDetails != (name != "Connect") {
				t.Errorf("%s: %s", name, w.Body)
			}
		}
	}
}
