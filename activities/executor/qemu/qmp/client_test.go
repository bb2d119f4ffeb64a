package qmp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const greeting = `{"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}, "package": "Debian"}, "capabilities": ["oob"]}}` + "\r\n"

// serve plays a machine: play handles the first connection.
func serve(t *testing.T, play func(conn net.Conn, lines *bufio.Scanner)) (path string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "qmp-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path = filepath.Join(dir, "qmp")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	played := make(chan struct{})
	go func() {
		defer close(played)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		play(conn, bufio.NewScanner(conn))
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-played
	})
	return path
}

func dial(t *testing.T, path string) *Client {
	t.Helper()
	c, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// negotiate plays the start of a connection.
func negotiate(conn net.Conn, lines *bufio.Scanner) {
	fmt.Fprint(conn, greeting)
	lines.Scan()
	fmt.Fprint(conn, `{"return": {}, "id": 1}`+"\r\n")
}

func TestCommandsAreAnsweredBetweenEvents(t *testing.T) {
	var received []string
	path := serve(t, func(conn net.Conn, lines *bufio.Scanner) {
		negotiate(conn, lines)
		received = append(received, lines.Text())
		lines.Scan()
		received = append(received, lines.Text())
		fmt.Fprint(conn, `{"event": "STOP", "timestamp": {"seconds": 1, "microseconds": 2}}`+"\r\n"+
			`{"return": {"status": "paused", "running": false}, "id": 2}`+"\r\n")
		lines.Scan()
		received = append(received, lines.Text())
		fmt.Fprint(conn, `{"id": 3, "error": {"class": "GenericError", "desc": "no such thing"}}`+"\r\n"+
			`{"event": "SHUTDOWN", "data": {"guest": true, "reason": "guest-shutdown"}}`+"\r\n")
	})
	c := dial(t, path)
	var status struct{ Status string }
	if err := c.Execute(t.Context(), "query-status", nil, &status); err != nil || status.Status != "paused" {
		t.Errorf("status %+v, error %v", status, err)
	}
	err := c.Execute(t.Context(), "eject", map[string]any{"id": "cd"}, nil)
	if own, ok := errors.AsType[*Error](err); !ok || own.Class != "GenericError" || err.Error() != "eject: no such thing" {
		t.Errorf("error %v", err)
	}
	var events []string
	for e := range c.Events() {
		events = append(events, e.Name+string(e.Data))
	}
	if got := strings.Join(events, " "); got != `STOP SHUTDOWN{"guest": true, "reason": "guest-shutdown"}` {
		t.Errorf("events %s", got)
	}
	want := `{"execute":"qmp_capabilities","id":1} {"execute":"query-status","id":2} {"execute":"eject","arguments":{"id":"cd"},"id":3}`
	if got := strings.Join(received, " "); got != want {
		t.Errorf("the machine got %s", got)
	}
	if err := c.Execute(t.Context(), "stop", nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: error %v", err)
	}
}

func TestPeersThatAreNotQEMUAreRefused(t *testing.T) {
	for name, sent := range map[string]string{
		"malformed message from QEMU": "SSH-2.0-dropbear\r\n",
		"not a greeting":              `{"return": {}}` + "\r\n",
		"token too long":              strings.Repeat("x", maxLine+1),
		"has ended":                   "",
	} {
		path := serve(t, func(conn net.Conn, _ *bufio.Scanner) { _, _ = io.WriteString(conn, sent) })
		if _, err := Dial(t.Context(), path); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want %q, got %v", name, err)
		}
	}
	if _, err := Dial(t.Context(), filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a socket: error %v", err)
	}
}

func TestSilentPeersTimeOut(t *testing.T) {
	t.Run("greeting", func(t *testing.T) {
		path := serve(t, func(_ net.Conn, lines *bufio.Scanner) { lines.Scan() })
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := Dial(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("command", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		path := serve(t, func(conn net.Conn, lines *bufio.Scanner) {
			negotiate(conn, lines)
			lines.Scan()
			cancel()
			lines.Scan()
			// The answer to the first command arrives late.
			fmt.Fprint(conn, `{"return": "late", "id": 2}`+"\r\n"+`{"return": "second", "id": 3}`+"\r\n")
			lines.Scan()
		})
		c := dial(t, path)
		if err := c.Execute(ctx, "stop", nil, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		var answer string
		if err := c.Execute(t.Context(), "cont", nil, &answer); err != nil || answer != "second" {
			t.Errorf("answer %q, error %v", answer, err)
		}
		_ = c.Close()
	})
}

func TestEventsThatAreNotReadEndTheConnection(t *testing.T) {
	path := serve(t, func(conn net.Conn, lines *bufio.Scanner) {
		negotiate(conn, lines)
		for range maxEvents + 1 {
			fmt.Fprint(conn, `{"event": "RESET"}`+"\r\n")
		}
		lines.Scan()
	})
	c := dial(t, path)
	for err := error(nil); err == nil || !strings.Contains(err.Error(), "too many unread events"); time.Sleep(time.Millisecond) {
		err = c.reason()
	}
	n := 0
	for range c.Events() {
		n++
	}
	if n != maxEvents {
		t.Errorf("%d events", n)
	}
}

func FuzzMessages(f *testing.F) {
	f.Add(greeting, `{"return": {}, "id": 1}`)
	f.Add(`{"QMP": 1}`, `{"event": "x", "id": -1}`)
	f.Fuzz(func(t *testing.T, first, second string) {
		mine, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			_, _ = io.WriteString(theirs, first+"\n"+second+"\n")
		}()
		if c, err := newClient(t.Context(), mine); err == nil {
			_ = c.Close()
		}
		_ = mine.Close()
	})
}
