//go:build linux && engines

package container_test

import (
	"bufio"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/activities/executor"
	containers "switchyard/activities/executor/container"
	"switchyard/activities/executor/container/enginetest"
	"switchyard/dev/testneeds"
)

// heldSocket is an address of an engine at which calls wait while the engine is away, as
// with systemd's socket activation. Each call takes delay longer.
type heldSocket struct {
	host  string
	delay atomic.Int64
	to    string
	over  chan struct{}
	conns sync.WaitGroup

	mu     sync.Mutex
	events []net.Conn
}

// cutEvents closes the connections that carry the engine's events, and returns how many
// there were.
func (h *heldSocket) cutEvents() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, conn := range h.events {
		conn.Close()
	}
	n, h.events = len(h.events), nil
	return n
}

func holdSocket(t *testing.T, engine *enginetest.Private) *heldSocket {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	h := &heldSocket{host: "unix://" + path, to: strings.TrimPrefix(engine.Host, "unix://"), over: make(chan struct{})}
	h.conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			h.conns.Go(func() { h.pass(conn) })
		}
	})
	t.Cleanup(func() { close(h.over); listener.Close(); h.conns.Wait() })
	return h
}

// pass connects a caller to the engine once the engine is up.
func (h *heldSocket) pass(caller net.Conn) {
	defer caller.Close()
	asks := bufio.NewReader(caller)
	if start, _ := asks.Peek(len("GET /events")); string(start) == "GET /events" {
		h.mu.Lock()
		h.events = append(h.events, caller)
		h.mu.Unlock()
	}
	wait := time.Duration(h.delay.Load())
	for {
		select {
		case <-h.over:
			return
		case <-time.After(wait):
		}
		engine, err := net.Dial("unix", h.to)
		if err != nil {
			wait = 20 * time.Millisecond
			continue
		}
		var ways sync.WaitGroup
		pass := func(to io.Writer, from io.Reader) {
			_, _ = io.Copy(to, from)
			caller.Close()
			engine.Close()
		}
		ways.Go(func() { pass(caller, engine) })
		ways.Go(func() { pass(engine, asks) })
		passed := make(chan struct{})
		go func() { ways.Wait(); close(passed) }()
		select {
		case <-passed:
		case <-h.over:
			caller.Close()
			engine.Close()
			<-passed
		}
		return
	}
}

// A container that ends with its engine is a fault of the node, even if the next engine
// process answers at the same address. A container that ends by itself is not, however slow
// the engine is.
func TestLongEngineWhoseSocketIsHeld(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	engine := enginetest.Own(t)
	socket := holdSocket(t, engine)
	e := newExecutor(t, containers.Options{Host: socket.host})
	for name, command := range map[string]string{
		"stopped":                    "echo ready; sleep 1000",
		"stopped, program cleans up": "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done",
	} {
		t.Run(name, func(t *testing.T) {
			testneeds.Await(t, "the engine is there", func() bool { return e.Available() == nil })
			a, out, _ := enginetest.Attempt(t, "build", map[string]any{"command": command})
			ended := enginetest.Begin(t, t.Context(), e, a)
			out.Await(t, "ready")
			engine.Restart()
			if r := enginetest.End(t, ended); r.Err == nil || executor.AsStartError(r.Err) != nil {
				t.Errorf("result %+v, error %v, want a fault of the node", r.Result, r.Err)
			}
			nothingOn(t, engine)
		})
	}
	// The container ends while there is no connection, with the exit code of an engine's
	// signal.
	t.Run("connection is cut", func(t *testing.T) {
		defer socket.delay.Store(0)
		testneeds.Await(t, "the engine is there", func() bool { return e.Available() == nil })
		dir := t.TempDir()
		makeTemp(t, dir)
		a, out, _ := enginetest.Attempt(t, "build", map[string]any{"command": "echo ready; while [ ! -e $FLAG ]; do sleep 0.05; done; exit 143"})
		a.Dirs.Workspace, a.Env = dir, map[string]string{"FLAG": dir + "/flag"}
		ended := enginetest.Begin(t, t.Context(), e, a)
		out.Await(t, "ready")
		socket.delay.Store(int64(2 * time.Second))
		testneeds.Await(t, "it is connected with", func() bool { return socket.cutEvents() > 0 })
		touch(t, dir+"/flag")
		if r := enginetest.End(t, ended); r.Err != nil || r.ExitCode != 143 {
			t.Errorf("result %+v, error %v, want the program's own", r.Result, r.Err)
		}
	})
	t.Run("slow", func(t *testing.T) {
		testneeds.Await(t, "the engine is there", func() bool { return e.Available() == nil })
		a, out, _ := enginetest.Attempt(t, "build", map[string]any{"command": "echo ready; sleep 1; exit 137"})
		ended := enginetest.Begin(t, t.Context(), e, a)
		out.Await(t, "ready")
		socket.delay.Store(int64(2 * time.Second))
		if r := enginetest.End(t, ended); r.Err != nil || r.ExitCode != 137 {
			t.Errorf("result %+v, error %v, want the program's own", r.Result, r.Err)
		}
	})
}
