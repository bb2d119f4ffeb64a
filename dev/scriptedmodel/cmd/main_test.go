package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// buffer is a text that one goroutine writes while another one reads it.
type buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *buffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(text)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// scriptFile writes a script and returns its path.
func scriptFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestErrorsNameTheirCause(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	good := scriptFile(t, "rules: [{ reply: { text: Hello } }]")
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "-script is missing"},
		{[]string{good}, "unexpected argument"},
		{[]string{"-script", "/does/not/exist"}, "read the script: open /does/not/exist"},
		{[]string{"-script", scriptFile(t, "rules: [{ replay: {} }]")}, "unknown field replay"},
		{[]string{"-script", good, "-address", taken.Addr().String()}, "listen on -address " + taken.Addr().String()},
		{[]string{"-port", "1"}, "flag provided but not defined"},
	} {
		if err := run(t.Context(), test.args, &buffer{}, &buffer{}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v, want %s", test.args, err, test.want)
		}
	}
}

func TestCommandServesUntilItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out buffer
	done := make(chan error, 1)
	script := scriptFile(t, "rules: [{ when: { user: hang }, reply: { text: Hi }, fault: { break: stall } }, { reply: { text: Hello } }]")
	go func() { done <- run(ctx, []string{"-script", script, "-address", "127.0.0.1:0"}, &out, &out) }()
	for !strings.Contains(out.String(), "/v1\n") {
		select {
		case err := <-done:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
	base := strings.Fields(out.String()[strings.Index(out.String(), "http://"):])[0]
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for _, word := range []string{"hello", "hang"} {
		body := strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"` + word + `"}]}`)
		response, err := client.Post(base+"/v1/chat/completions", "application/json", body)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("status %d", response.StatusCode)
		}
		if word == "hello" {
			if _, err := io.Copy(io.Discard, response.Body); err != nil {
				t.Error(err)
			}
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "2 requests: 1 delivered, 0 refused, ") {
		t.Error(out.String())
	}
}
