package caller

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"switchyard/activities/executor"
	"switchyard/activities/sessions/wire"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// node returns the inside of an attempt on a node that handles each stream with serve.
func node(t *testing.T, serve func(conn wire.Conn, h *v1.SessionHeader)) executor.Inside {
	t.Helper()
	near, far := net.Pipe()
	client, server := wire.NewSession(near, true), wire.NewSession(far, false)
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				h, err := wire.ReadHeader(conn)
				if err != nil {
					t.Error(err)
					return
				}
				if h.GetUser() == "nobody" {
					wire.Refuse(conn, "not_found", "the attempt has no user nobody")
					return
				}
				_ = wire.WriteMessage(conn, &v1.SessionReply{Node: "n1", Port: h.GetPort() + 1})
				serve(conn, h)
			}()
		}
	}()
	return New(func(ctx context.Context, h *v1.SessionHeader) (wire.Conn, *v1.SessionReply, error) {
		conn, err := client.Open(ctx)
		if err != nil {
			return nil, nil, err
		}
		reply, err := wire.Request(ctx, conn, h)
		return conn, reply, err
	})
}

func exit(conn wire.Conn, e *v1.SessionExit) {
	_ = wire.WriteMessage(conn, &v1.SessionFrame{Frame: &v1.SessionFrame_Exit{Exit: e}})
	_ = conn.Close()
}

func TestExecReportsLossesAndRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		serve func(conn wire.Conn)
		user  string
		check func(error) bool
	}{
		"no exit": {func(conn wire.Conn) { _ = conn.Close() }, "", func(err error) bool {
			lost, ok := errors.AsType[*LostError](err)
			return ok && strings.Contains(lost.Error(), "link") && strings.HasSuffix(lost.Error(), "the program may still run on node n1")
		}},
		"given up": {func(conn wire.Conn) { wire.Abort(conn, "the gateway is shutting down") }, "", func(err error) bool {
			_, ok := errors.AsType[*LostError](err)
			return ok && strings.Contains(err.Error(), "the gateway is shutting down")
		}},
		"not to be run": {func(conn wire.Conn) { exit(conn, &v1.SessionExit{Code: 127, Error: "no program x"}) }, "", func(err error) bool {
			refusal, ok := errors.AsType[*executor.Refusal](err)
			return ok && refusal.Text == "no program x"
		}},
		"refused": {nil, "nobody", func(err error) bool {
			refused, ok := errors.AsType[*wire.RefusedError](err)
			return ok && refused.Code == "not_found"
		}},
	} {
		in := node(t, func(conn wire.Conn, _ *v1.SessionHeader) { c.serve(conn) })
		if _, err := in.Exec(t.Context(), executor.Command{User: c.user}); !c.check(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEndOfContextEndsTheSession checks that the end of ctx aborts the session, even while a Read
// of the input is blocked forever.
func TestEndOfContextEndsTheSession(t *testing.T) {
	gone := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	in := node(t, func(conn wire.Conn, _ *v1.SessionHeader) {
		cancel()
		gone <- wire.ReadMessage(conn, &v1.SessionFrame{})
	})
	stdin, typist := io.Pipe()
	defer func() { _ = typist.Close() }()
	if _, err := in.Exec(ctx, executor.Command{Stdin: stdin}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := <-gone; !errors.Is(err, wire.ErrLost) {
		t.Errorf("the node reads %v", err)
	}
}

func TestOutputThatCannotBeWrittenEndsSession(t *testing.T) {
	in := node(t, func(conn wire.Conn, _ *v1.SessionHeader) {
		for wire.WriteMessage(conn, &v1.SessionFrame{Frame: &v1.SessionFrame_Stdout{Stdout: make([]byte, 1000)}}) == nil {
		}
	})
	r, w := io.Pipe()
	_ = r.Close()
	if _, err := in.Exec(t.Context(), executor.Command{Stdout: w}); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}
