package model

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"switchyard/dev/scriptedmodel"
	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) {
	testneeds.Parallel(4)
	testneeds.NoLeaks(m)
}

// testKey is the key in tests. No error may contain it.
const testKey = "sk-test-0123456789"

// patience bounds every wait of a test. Only a broken test reaches it.
const patience = 3 * time.Minute

// eachProvider runs a test for each wire format, in parallel.
func eachProvider(t *testing.T, test func(t *testing.T, provider string)) {
	t.Helper()
	for _, provider := range []string{providerAnthropic, providerOpenAI} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			test(t, provider)
		})
	}
}

// serve serves a script until the test ends.
func serve(t *testing.T, rules ...scriptedmodel.Rule) (*scriptedmodel.Server, *httptest.Server) {
	t.Helper()
	script := scriptedmodel.Script{Key: testKey, Rules: rules}
	if err := script.Validate(); err != nil {
		t.Fatal(err)
	}
	model := scriptedmodel.New(script)
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	return model, server
}

// serveInBubble serves a script without a network, so that the time of a bubble passes.
func serveInBubble(t *testing.T, rule scriptedmodel.Rule) *httptest.Server {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	server := httptest.NewUnstartedServer(scriptedmodel.New(scriptedmodel.Script{Rules: []scriptedmodel.Rule{rule}}))
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	server.Client().Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return listener.DialContext(ctx)
	}
	t.Cleanup(server.Close)
	return server
}

// ask returns a client for a server. change may be nil.
func ask(t *testing.T, provider string, server *httptest.Server, change func(*Options)) Client {
	t.Helper()
	o := Options{Provider: provider, BaseURL: server.URL, Key: testKey, HTTPClient: server.Client()}
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// says returns a conversation with one message.
func says(text string) Request {
	return Request{Model: "test-model", Messages: []Message{{Role: User, Parts: []Part{{Text: text}}}}}
}

// bounded returns a context that ends if the test hangs.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// failure requests a reply that must fail, and returns the error.
func failure(t *testing.T, c Client, r Request) *Error {
	t.Helper()
	reply, err := c.Reply(bounded(t), r, nil)
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("reply %+v, error %v", reply, err)
	}
	if strings.Contains(err.Error(), testKey) {
		t.Errorf("the error contains the key: %v", err)
	}
	return e
}

// raw serves the same response to every request.
func raw(t *testing.T, status int, contentType, body string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return server
}
