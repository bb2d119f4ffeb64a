package mcptool

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/activities/executor/subagent/tool"
	v1 "switchyard/proto/switchyard/v1"
)

// service is an HTTP server that can be made to fail.
type service struct {
	*httptest.Server
	handler atomic.Value // http.Handler
	headers atomic.Value // http.Header of the last request
	forget  func()
}

func newService(t *testing.T, stateless bool) *service {
	t.Helper()
	s := &service{}
	s.restart(stateless)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.headers.Store(r.Header.Clone())
		s.handler.Load().(http.HandlerFunc)(w, r)
	}))
	t.Cleanup(func() {
		s.Close()
		s.forget()
	})
	return s
}

// restart drops all sessions.
func (s *service) restart(stateless bool) {
	if s.forget != nil {
		s.forget()
	}
	server := newTestServer()
	s.forget = func() {
		for session := range server.Sessions() {
			_ = session.Close()
		}
	}
	s.handler.Store(http.HandlerFunc(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: stateless}).ServeHTTP))
}

func TestServiceServesTools(t *testing.T) {
	t.Parallel()
	for _, stateless := range []bool{false, true} {
		o, _ := options(t)
		service := newService(t, stateless)
		s := connected(t, map[string]*v1.McpServer{"web": {Url: service.URL, Headers: map[string]string{"X-Key": "$TOKEN"}}}, o)
		if got := use(t, s, "web__echo", `{"Text":"hi"}`); got != (tool.Outcome{Text: "hi"}) {
			t.Errorf("%+v", got)
		}
		if got := service.headers.Load().(http.Header).Get("X-Key"); got != "s3cret" {
			t.Errorf("the header is %q", got)
		}
		service.restart(stateless)
		if got := use(t, s, "web__echo", `{"Text":"again"}`); got != (tool.Outcome{Text: "again"}) {
			t.Errorf("after a restart of the service: %+v", got)
		}
		good := service.handler.Load()
		service.handler.Store(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			panic(http.ErrAbortHandler)
		}))
		if got := use(t, s, "web__echo", `{"Text":"hi"}`); !got.IsError || !strings.Contains(got.Text, `"web"`) {
			t.Errorf("a cut answer: %+v", got)
		}
		service.handler.Store(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "down", http.StatusInternalServerError) }))
		if got := use(t, s, "web__echo", `{"Text":"hi"}`); !got.IsError {
			t.Errorf("an error of the service: %+v", got)
		}
		service.handler.Store(good)
		if got := use(t, s, "web__echo", `{"Text":"back"}`); got != (tool.Outcome{Text: "back"}) {
			t.Errorf("%+v", got)
		}
	}
}

func TestServicesThatDoNotAnswerAreNamed(t *testing.T) {
	t.Parallel()
	o, _ := options(t)
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client disconnects
		<-r.Context().Done()
	}))
	defer hanging.Close()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) }))
	defer refusing.Close()
	wantRefusal(t, map[string]*v1.McpServer{
		"hanging": {Url: hanging.URL}, "refusing": {Url: refusing.URL}, "away": {Url: "http://127.0.0.1:1/mcp"},
	}, o, `MCP server "hanging" did not`, `"refusing" failed to initialize`, "Unauthorized", `"away" failed to initialize`, "connection refused")
}

// TestHeadersStayWithTheServer redirects a client to another host.
func TestHeadersStayWithTheServer(t *testing.T) {
	t.Parallel()
	o, _ := options(t)
	elsewhere := newService(t, true)
	sending := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}))
	defer sending.Close()
	connected(t, map[string]*v1.McpServer{"s": {Url: sending.URL, Headers: map[string]string{"X-Key": "$TOKEN"}}}, o)
	if got := elsewhere.headers.Load().(http.Header).Get("X-Key"); got != "" {
		t.Errorf("another host gets the header: %q", got)
	}
}
