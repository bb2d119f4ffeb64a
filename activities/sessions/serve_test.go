package sessions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/sessions/caller"
	"switchyard/activities/sessions/wire"
	v1 "switchyard/proto/switchyard/v1"
)

// node serves the sessions of one attempt over a connection.
type node struct {
	in     executor.Inside
	err    error
	client *wire.Session

	mu   sync.Mutex
	open int
}

func (n *node) Enter(context.Context, *v1.SessionHeader) (executor.Inside, func(), error) {
	if n.err != nil {
		return nil, nil, n.err
	}
	n.count(1)
	return n.in, func() { n.count(-1) }, nil
}

func (n *node) count(d int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open += d
	return n.open
}

// startNode starts a node and connects to it.
func startNode(t *testing.T, in executor.Inside) *node {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	near, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	n := &node{in: in, client: wire.NewSession(near, true)}
	server := wire.NewSession(far, false)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				if h, err := wire.ReadHeader(conn); err == nil {
					Serve(context.WithoutCancel(t.Context()), conn, h, n)
				} else {
					conn.Close()
				}
			})
		}
	})
	t.Cleanup(func() {
		n.client.Close()
		server.Close()
		serving.Wait()
		if open := n.count(0); open != 0 {
			t.Errorf("%d sessions count as open", open)
		}
	})
	return n
}

func (n *node) request(ctx context.Context, h *v1.SessionHeader) (wire.Conn, *v1.SessionReply, error) {
	conn, err := n.client.Open(ctx)
	if err != nil {
		return nil, nil, err
	}
	reply, err := wire.Request(ctx, conn, h)
	return conn, reply, err
}

func (n *node) inside() executor.Inside { return caller.New(n.request) }

// scripted is an Inside whose methods call functions that a test provides.
type scripted struct {
	executor.Inside
	exec     func(ctx context.Context, c executor.Command) (executor.ExitStatus, error)
	dial     func() (net.Conn, error)
	readTar  func(ctx context.Context, to io.Writer) error
	writeTar func(ctx context.Context, from io.Reader) error
}

func (s *scripted) Exec(ctx context.Context, c executor.Command) (executor.ExitStatus, error) {
	return s.exec(ctx, c)
}

func (s *scripted) Dial(context.Context, int) (net.Conn, error) { return s.dial() }

func (s *scripted) ReadTar(ctx context.Context, _, _ string, to io.Writer) error {
	return s.readTar(ctx, to)
}

func (s *scripted) WriteTar(ctx context.Context, _, _ string, _ bool, from io.Reader) error {
	return s.writeTar(ctx, from)
}

type missing struct{ not bool }

func (m missing) Error() string  { return "task a has ended" }
func (m missing) NotFound() bool { return !m.not }

func TestImpossibleSessionsAreRefusedWithACode(t *testing.T) {
	exec := &v1.SessionHeader{Kind: "exec", Exec: &v1.SessionExec{}}
	for name, c := range map[string]struct {
		header *v1.SessionHeader
		enter  error
		dial   error
		code   string
	}{
		"no such attempt":      {header: exec, enter: fmt.Errorf("enter: %w", missing{}), code: "not_found"},
		"cannot be entered":    {header: exec, enter: missing{true}, code: "failed_precondition"},
		"fault of the node":    {header: exec, enter: errors.New("a \x1b[31mfault\n"), code: "internal"},
		"unknown kind":         {header: &v1.SessionHeader{Kind: "vnc"}, code: "invalid_argument"},
		"nothing listens":      {header: &v1.SessionHeader{Kind: "connect", Port: 1}, dial: &executor.Refusal{Text: "nothing listens"}, code: "failed_precondition"},
		"ended meanwhile":      {header: &v1.SessionHeader{Kind: "connect", Port: 1}, dial: executor.ErrNotRunning, code: "not_found"},
		"connection of no use": {header: &v1.SessionHeader{Kind: "connect", Port: 1}, code: "internal"},
	} {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, &scripted{dial: func() (net.Conn, error) {
				near, far := net.Pipe()
				far.Close()
				return near, c.dial
			}})
			n.err = c.enter
			_, _, err := n.request(t.Context(), c.header)
			refused, ok := errors.AsType[*wire.RefusedError](err)
			if !ok || refused.Code != c.code || refused.Message == "" || strings.ContainsAny(refused.Message, "\n\x1b") {
				t.Errorf("error %v, %+v, want code %s", err, refused, c.code)
			}
		})
	}
}

func TestProgramEndsWhenItsClientHasLeft(t *testing.T) {
	for name, leave := range map[string]func(conn wire.Conn, n *node){
		"gives up":        func(conn wire.Conn, _ *node) { wire.Abort(conn, "") },
		"closes":          func(conn wire.Conn, _ *node) { conn.Close() },
		"loses its link":  func(_ wire.Conn, n *node) { n.client.Close() },
		"sends no frames": func(conn wire.Conn, _ *node) { _, _ = conn.Write([]byte{200, 200, 200, 200, 200, 200}) },
	} {
		for _, prints := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, prints %v", name, prints), func(t *testing.T) {
				started, ended := make(chan struct{}), make(chan error, 1)
				n := startNode(t, &scripted{exec: func(ctx context.Context, c executor.Command) (executor.ExitStatus, error) {
					close(started)
					if prints {
						for {
							if _, err := c.Stdout.Write(make([]byte, 1<<20)); err != nil { // more than the client reads
								break
							}
						}
					}
					<-ctx.Done()
					ended <- context.Cause(ctx)
					return executor.ExitStatus{Code: 129, Signal: "HUP"}, nil
				}})
				conn, _, err := n.request(t.Context(), &v1.SessionHeader{Kind: "exec", Exec: &v1.SessionExec{}})
				if err != nil {
					t.Fatal(err)
				}
				<-started
				leave(conn, n)
				if err := <-ended; !errors.Is(err, errLeft) {
					t.Errorf("the program ends for %v", err)
				}
				conn.Close()
			})
		}
	}
}

// TestSignalsPassInputThatIsNotRead sends more input than may wait for a program that does not read.
func TestSignalsPassInputThatIsNotRead(t *testing.T) {
	n := startNode(t, &scripted{exec: func(_ context.Context, c executor.Command) (executor.ExitStatus, error) {
		for range 2 { // in any order
			select {
			case size := <-c.Terminal.Resizes:
				if size.Columns != 132 {
					t.Errorf("the size is %v", size)
				}
			case got := <-c.Signals:
				if got != "INT" {
					t.Errorf("the signal is %q", got)
				}
			}
		}
		if read, err := io.CopyN(io.Discard, c.Stdin, 5*maxInput); err != nil {
			t.Errorf("%d bytes of input, error %v", read, err)
		}
		return executor.ExitStatus{Code: 130, Signal: "INT"}, nil
	}})
	endless, signals, resizes := &counter{}, make(chan string), make(chan executor.WindowSize)
	go func() {
		for last := int64(-1); endless.get() != last || last == 0; yield(t) {
			last = endless.get()
		}
		resizes <- executor.WindowSize{Columns: 132}
		signals <- "INT"
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	status, err := n.inside().Exec(ctx, executor.Command{Args: []string{"x"}, Stdin: endless, Signals: signals, Terminal: &executor.Terminal{Resizes: resizes}})
	if err != nil || status != (executor.ExitStatus{Code: 130, Signal: "INT"}) {
		t.Errorf("%+v, error %v", status, err)
	}
}

func TestInputThatIsNotReadIsBounded(t *testing.T) {
	release := make(chan struct{})
	n := startNode(t, &scripted{exec: func(context.Context, executor.Command) (executor.ExitStatus, error) {
		<-release
		return executor.ExitStatus{}, nil
	}})
	var sent counter
	done := make(chan error, 1)
	go func() {
		_, err := n.inside().Exec(t.Context(), executor.Command{Args: []string{"x"}, Stdin: &sent})
		done <- err
	}()
	before := int64(-1)
	for sent.get() != before || before < maxInput {
		before = sent.get()
		for range 2000 { // a writer that is not blocked proceeds meanwhile
			sent.get()
		}
		if before > 64<<20 {
			t.Fatal("the input of a program that reads nothing is not held back")
		}
		yield(t)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestErrorsOfArchivesArrive(t *testing.T) {
	n := startNode(t, &scripted{
		readTar: func(_ context.Context, to io.Writer) error {
			_, _ = io.WriteString(to, strings.Repeat("archive", 100_000))
			return fmt.Errorf("read /x: %w", fs.ErrPermission)
		},
		writeTar: func(_ context.Context, from io.Reader) error {
			_, _ = io.ReadFull(from, make([]byte, 10))
			return errors.New("write /x: the disk is full")
		},
	})
	var got strings.Builder
	if err := n.inside().ReadTar(t.Context(), "", "/x", &got); err == nil || err.Error() != "read /x: permission denied" || got.Len() != 700_000 {
		t.Errorf("%d bytes, error %v", got.Len(), err)
	}
	if err := n.inside().WriteTar(t.Context(), "", "/x", false, &counter{}); err == nil || err.Error() != "write /x: the disk is full" {
		t.Errorf("error %v", err)
	}
}

// TestArchiveThatBreaksOffIsAnError checks that a partial archive, whose client has left, does not count as
// complete.
func TestArchiveThatBreaksOffIsAnError(t *testing.T) {
	for name, leave := range map[string]func(wire.Conn){
		"gives up": func(c wire.Conn) { wire.Abort(c, "") }, "closes": func(c wire.Conn) { c.Close() }, "half-closes": func(c wire.Conn) { _ = c.CloseWrite() },
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			n := startNode(t, &scripted{writeTar: func(_ context.Context, from io.Reader) error {
				_, err := io.Copy(io.Discard, from)
				ended <- err
				return err
			}})
			conn, _, err := n.request(t.Context(), &v1.SessionHeader{Kind: "write_tar", Path: "/x"})
			if err != nil {
				t.Fatal(err)
			}
			if err := wire.WriteMessage(conn, &v1.SessionFrame{Frame: &v1.SessionFrame_Stdin{Stdin: []byte("half")}}); err != nil {
				t.Fatal(err)
			}
			leave(conn)
			if err := <-ended; err == nil {
				t.Error("half an archive is taken for a whole one")
			}
			conn.Close()
		})
	}
}
