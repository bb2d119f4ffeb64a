package cli

import (
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"switchyard/cli/stack"
)

// TestServiceManagerWaitsForTheDrain checks that a stopping worker extends the time-out of systemd by its drain time-out.
func TestServiceManagerWaitsForTheDrain(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	getenv := func(string) string { return socket }
	state := stopping(stack.Config{Nodes: []stack.NodeConfig{{DrainTimeout: time.Second}, {DrainTimeout: time.Minute}}})
	notifyServiceManager(getenv, slog.Default(), state)
	got := make([]byte, 1000)
	n, err := conn.Read(got)
	if err != nil || string(got[:n]) != "STOPPING=1\nEXTEND_TIMEOUT_USEC=90000000" {
		t.Errorf("%q, %v", got[:n], err)
	}
	if stopping(stack.Config{}) != "STOPPING=1\nEXTEND_TIMEOUT_USEC=30000000" {
		t.Errorf("a gateway says %q", stopping(stack.Config{}))
	}
}
