package caller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

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

func TestExecCarriesAllOfAProgram(t *testing.T) {
	in := node(t, func(conn wire.Conn, h *v1.SessionHeader) {
		e := h.GetExec()
		_ = wire.WriteMessage(conn, &v1.SessionFrame{Frame: &v1.SessionFrame_Stdout{Stdout: fmt.Appendf(nil, "%s %s %s %v %v %s|", e.GetCommand(), e.GetDirectory(), e.GetUser(), e.GetStdin(), e.GetTerminal(), e.GetTerminalType())}})
		for range 5 {
			frame := &v1.SessionFrame{}
			if err := wire.ReadMessage(conn, frame); err != nil {
				t.Error(err)
				return
			}
			var line string
			switch f := frame.GetFrame().(type) {
			case *v1.SessionFrame_Stdin:
				line = string(f.Stdin)
			case *v1.SessionFrame_StdinEnd:
				line = "end"
			case *v1.SessionFrame_Resize:
				line = fmt.Sprintf("%dx%d", f.Resize.GetColumns(), f.Resize.GetRows())
			case *v1.SessionFrame_Signal:
				line = f.Signal
			}
			_ = wire.WriteMessage(conn, &v1.SessionFrame{Frame: &v1.SessionFrame_Stderr{Stderr: []byte(line + "|")}})
		}
		exit(conn, &v1.SessionExit{Code: 143, Signal: "TERM"})
	})
	signals, resizes := make(chan string, 2), make(chan executor.WindowSize, 1)
	signals <- "INT"
	signals <- "TERM"
	close(signals)
	resizes <- executor.WindowSize{Columns: 80, Rows: 24}
	var stdout, stderr bytes.Buffer
	status, err := in.Exec(t.Context(), executor.Command{
		Args: []string{"a", "b"}, Dir: "/tmp", User: "root", Stdin: strings.NewReader("typed"), Stdout: &stdout, Stderr: &stderr, Signals: signals,
		Terminal: &executor.Terminal{Type: "xterm", Resizes: resizes},
	})
	if err != nil || status != (executor.ExitStatus{Code: 143, Signal: "TERM"}) {
		t.Fatalf("%v, %v", status, err)
	}
	if stdout.String() != "[a b] /tmp root true true xterm|" {
		t.Error(stdout.String())
	}
	for _, part := range []string{"typed|", "end|", "80x24|", "INT|", "TERM|"} {
		if !strings.Contains(stderr.String(), part) {
			t.Errorf("%s is missing in %s", part, stderr.String())
		}
	}
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

func TestPortsConnectAndListen(t *testing.T) {
	in := node(t, func(conn wire.Conn, h *v1.SessionHeader) {
		if h.GetKind() == "connect" {
			_, _ = io.Copy(conn, conn)
			_ = conn.CloseWrite()
			return
		}
		session := wire.NewSession(conn, false)
		c, err := session.Open(context.Background())
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(c, "hello")
		_ = c.Close()
		<-session.Done()
	})
	conn, err := in.Dial(t.Context(), 80)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, "echo")
	_ = conn.(wire.Conn).CloseWrite()
	if got, err := io.ReadAll(conn); string(got) != "echo" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	_ = conn.Close()
	listener, err := in.Listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil || listener.Addr().String() != "127.0.0.1:1" {
		t.Fatal(listener.Addr(), err)
	}
	if got, err := io.ReadAll(accepted); string(got) != "hello" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	_ = accepted.Close()
	_ = listener.Close()
	if _, err := listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	for _, port := range []int{0, -1, 65536} {
		if _, err := in.Dial(t.Context(), port); err == nil {
			t.Errorf("port %d", port)
		}
	}
}

func TestArchivesArriveCompleteOrFail(t *testing.T) {
	archive := bytes.Repeat([]byte("0123456789"), 20000)
	in := node(t, func(conn wire.Conn, h *v1.SessionHeader) {
		if h.GetKind() == "read_tar" {
			for at := 0; at < len(archive); at += 1000 {
				_ = wire.WriteMessage(conn, &v1.SessionFrame{Frame: &v1.SessionFrame_Stdout{Stdout: archive[at : at+1000]}})
			}
			exit(conn, &v1.SessionExit{})
			return
		}
		var got []byte
		for {
			frame := &v1.SessionFrame{}
			if err := wire.ReadMessage(conn, frame); err != nil || h.GetPath() == "/full" {
				exit(conn, &v1.SessionExit{Error: "no space left"})
				return
			}
			if frame.GetStdinEnd() {
				break
			}
			got = append(got, frame.GetStdin()...)
		}
		if !bytes.Equal(got, archive) || h.GetPath() != "/in" || !h.GetRename() {
			exit(conn, &v1.SessionExit{Error: "other bytes"})
			return
		}
		exit(conn, &v1.SessionExit{})
	})
	var got bytes.Buffer
	if err := in.ReadTar(t.Context(), "", "x", &got); err != nil || !bytes.Equal(got.Bytes(), archive) {
		t.Errorf("%d bytes, %v", got.Len(), err)
	}
	if err := in.WriteTar(t.Context(), "", "/in", true, bytes.NewReader(archive)); err != nil {
		t.Error(err)
	}
	broken := errors.New("the disk is broken")
	if err := in.WriteTar(t.Context(), "", "/in", true, io.MultiReader(bytes.NewReader(archive), failing{broken})); !errors.Is(err, broken) {
		t.Error(err)
	}
	if err := in.WriteTar(t.Context(), "", "/full", true, endless{}); err == nil || err.Error() != "no space left" {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestFilesAreServedUntilTheEnd(t *testing.T) {
	in := node(t, func(conn wire.Conn, _ *v1.SessionHeader) {
		_, _ = io.Copy(conn, conn)
		_ = conn.Close()
	})
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- in.ServeFiles(t.Context(), "", struct {
			io.Reader
			io.Writer
		}{io.LimitReader(far, 5), far})
	}()
	go func() { _, _ = io.WriteString(near, "hello") }()
	got := make([]byte, 5)
	if _, err := io.ReadFull(near, got); err != nil || string(got) != "hello" {
		t.Errorf("%q, %v", got, err)
	}
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
}
