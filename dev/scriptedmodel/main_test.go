package scriptedmodel

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// testKey is the default API key of the tests' clients.
const testKey = "sk-test-key"

// patience bounds what a test waits for. Only a broken test reaches it.
const patience = time.Minute

// start serves a script until the test ends.
func start(t *testing.T, script Script) (*Server, *httptest.Server) {
	t.Helper()
	if err := script.Validate(); err != nil {
		t.Fatal(err)
	}
	model := New(script)
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	return model, server
}

// bounded returns a context that ends a hanging test.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// waitUntil waits until a condition holds.
func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for ctx := bounded(t); !holds(); {
		select {
		case <-ctx.Done():
			t.Fatalf("still not so: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// says returns a conversation with one user message.
func says(text string) Conversation {
	return Conversation{Model: "test-model", Messages: []Message{{Role: RoleUser, Text: text}}}
}
