package sshserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"
	"google.golang.org/grpc/test/bufconn"

	"switchyard/activities/executor"
	"switchyard/dev/sessiontest"
)

func newSession(t *testing.T, client *ssh.Client) *ssh.Session {
	t.Helper()
	s, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestSignalsEndPrograms(t *testing.T) {
	t.Parallel()
	client := serve(t, Config{Inside: sessiontest.Local{Dir: t.TempDir()}}).dial(t)
	for _, signal := range []ssh.Signal{ssh.SIGTERM, ssh.SIGKILL, ssh.SIGINT} {
		s := newSession(t, client)
		out, err := s.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start("echo ready; exec sleep 1000"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, 6)); err != nil {
			t.Fatal(err)
		}
		if err := s.Signal(signal); err != nil {
			t.Fatal(err)
		}
		ended, ok := errors.AsType[*ssh.ExitError](s.Wait())
		if !ok || ended.Signal() != string(signal) {
			t.Errorf("%s: %v", signal, ended)
		}
	}
}

// TestExitStatusComesBeforeTheEnd runs many programs that end right after their start.
func TestExitStatusComesBeforeTheEnd(t *testing.T) {
	t.Parallel()
	inside := scripted{exec: func(_ context.Context, c executor.Command) (executor.ExitStatus, error) {
		_, err := io.WriteString(c.Stdout, c.Line)
		return executor.ExitStatus{Code: 3}, err
	}}
	client := serve(t, Config{Inside: inside}).dial(t)
	var work sync.WaitGroup
	for range 32 {
		work.Go(func() {
			for range 10 {
				s, err := client.NewSession()
				if err != nil {
					t.Error(err)
					return
				}
				out, err := s.Output("a line")
				if ended, ok := errors.AsType[*ssh.ExitError](err); !ok || ended.ExitStatus() != 3 || string(out) != "a line" {
					t.Errorf("%q, %v", out, err)
				}
				_ = s.Close()
			}
		})
	}
	work.Wait()
}

func TestClientThatLeavesEndsItsProgram(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 2)
	inside := scripted{exec: func(ctx context.Context, _ executor.Command) (executor.ExitStatus, error) {
		<-ctx.Done()
		ended <- ctx.Err()
		return executor.ExitStatus{}, ctx.Err()
	}}
	client := serve(t, Config{Inside: inside}).dial(t)
	s, kept := newSession(t, client), newSession(t, client)
	if err := errors.Join(s.Start("x"), kept.Start("x")); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	<-ended
	_ = client.Close()
	<-ended
}

func TestErrorsAreShownToTheClient(t *testing.T) {
	t.Parallel()
	inside := scripted{exec: func(context.Context, executor.Command) (executor.ExitStatus, error) {
		return executor.ExitStatus{}, &executor.Refusal{Text: "task web has\nended \x1b[2J"}
	}}
	s := newSession(t, serve(t, Config{Inside: inside}).dial(t))
	var stderr bytes.Buffer
	s.Stderr = &stderr
	ended, ok := errors.AsType[*ssh.ExitError](s.Run("x"))
	if !ok || ended.ExitStatus() != codeNotRun || stderr.String() != "switchyard: task web has ended \uFFFD[2J\n" {
		t.Errorf("%v, %q", ended, stderr.String())
	}
}

func TestClientLearnsWhyItsConnectionEnds(t *testing.T) {
	t.Parallel()
	inside := scripted{exec: func(ctx context.Context, c executor.Command) (executor.ExitStatus, error) {
		_, _ = io.WriteString(c.Stdout, "ready\n")
		<-ctx.Done()
		return executor.ExitStatus{}, ctx.Err()
	}}
	server := serve(t, Config{Inside: inside, Farewell: time.Minute})
	client := server.dial(t)
	s := newSession(t, client)
	var stderr bytes.Buffer
	s.Stderr = &stderr
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start("x"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	server.end(errGone)
	if err := s.Wait(); err == nil || stderr.String() != "switchyard: the key was removed\uFFFD[2J\n" {
		t.Errorf("%v, %q", err, stderr.String())
	}
	if err := client.Wait(); err == nil {
		t.Error("the connection is open")
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	client := serve(t, Config{Inside: sessiontest.Local{Dir: t.TempDir()}}).dial(t)
	for _, kind := range []string{"auth-agent@openssh.com", "x11", "direct-streamlocal@openssh.com", "tun@openssh.com", "forwarded-tcpip"} {
		_, _, err := client.OpenChannel(kind, nil)
		if refused, ok := errors.AsType[*ssh.OpenChannelError](err); !ok || refused.Reason != ssh.UnknownChannelType {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if _, _, err := client.OpenChannel("direct-tcpip", []byte("x")); err == nil {
		t.Error("a request that is none was accepted")
	}
	s := newSession(t, client)
	for kind, payload := range map[string][]byte{
		"auth-agent-req@openssh.com": nil, "x11-req": nil, "pty-req": []byte("x"), "env": ssh.Marshal(struct{ A, B string }{"LD_PRELOAD", "x"}),
		"signal": ssh.Marshal(struct{ A string }{"STOP"}), "subsystem": ssh.Marshal(struct{ A string }{"netconf"}), "exec": ssh.Marshal(struct{ A string }{"a\x00b"}), "break": nil,
	} {
		if ok, err := s.SendRequest(kind, true, payload); ok || err != nil {
			t.Errorf("%s: %v, %v", kind, ok, err)
		}
	}
	for name, value := range map[string]string{"LC_ALL": "C", "LANG": "de_DE.UTF-8", "TERM": "xterm"} {
		if err := s.Setenv(name, value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if out, err := s.Output("echo $LC_ALL $LANG $TERM"); err != nil || string(out) != "C de_DE.UTF-8 xterm\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestSizeOfTerminalIsOneThatTerminalsCanHave(t *testing.T) {
	t.Parallel()
	got := make(chan *executor.Terminal, 1)
	inside := scripted{exec: func(_ context.Context, c executor.Command) (executor.ExitStatus, error) {
		got <- c.Terminal
		return executor.ExitStatus{}, nil
	}}
	client := serve(t, Config{Inside: inside}).dial(t)
	for _, test := range []struct {
		term          string
		rows, columns int
		want          executor.WindowSize
		wantType      string
	}{
		{"xterm", 0, 0, executor.WindowSize{Columns: 80, Rows: 24}, "xterm"}, {"\x1b[2J", 1 << 20, 1 << 20, executor.WindowSize{Columns: 65535, Rows: 65535}, "dumb"},
	} {
		s := newSession(t, client)
		if err := s.RequestPty(test.term, test.rows, test.columns, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Run("x"); err != nil {
			t.Fatal(err)
		}
		if terminal := <-got; terminal.Size != test.want || terminal.Type != test.wantType {
			t.Errorf("%+v", terminal)
		}
	}
}

func TestSessionsOfAConnectionAreBounded(t *testing.T) {
	t.Parallel()
	client := serve(t, Config{Inside: sessiontest.Local{Dir: t.TempDir()}}).dial(t)
	var open []*ssh.Session
	for range maxSessions {
		open = append(open, newSession(t, client))
	}
	if _, err := client.NewSession(); err == nil || !strings.Contains(err.Error(), "64 sessions") {
		t.Errorf("one more: %v", err)
	}
	_ = open[0].Close()
	for { // until the server has noticed that the session is closed
		s, err := client.NewSession()
		if err == nil {
			_ = s.Close()
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestListenersEndWhenCancelledAndWithTheConnection(t *testing.T) {
	t.Parallel()
	client := serve(t, Config{Inside: sessiontest.Local{Dir: t.TempDir()}}).dial(t)
	awaitClosed := func(address string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				return
			}
			_ = conn.Close()
			if time.Now().After(deadline) {
				t.Fatalf("%s is open", address)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	first, err := client.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	other, err := client.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if first.Addr().String() == other.Addr().String() {
		t.Fatal("one port twice")
	}
	if _, err := client.Listen("tcp", first.Addr().String()); err == nil {
		t.Error("a port is listened on twice")
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	awaitClosed(first.Addr().String())
	_ = client.Close()
	awaitClosed(other.Addr().String())
}

// TestConnectionOfASilentClientEnds checks that the connection of a client that silently stops replying is
// closed.
func TestConnectionOfASilentClientEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := bufconn.Listen(1 << 20)
		serveOn(t, listener, Config{})
		conn, err := listener.Dial()
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		opened, _, requests := shakeHands(t, conn)
		if r := <-requests; r.Type != "keepalive@openssh.com" { // to which a client of x/crypto would reply by itself
			t.Errorf("a request %s", r.Type)
		}
		_ = opened.Wait()
		if took, want := time.Since(began), 4*(Config{}).withDefaults().KeepAlive; took != want {
			t.Errorf("the connection ended after %v, want %v", took, want)
		}
	})
}

func TestKeepAliveOfClientIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := bufconn.Listen(1 << 20)
		serveOn(t, listener, Config{})
		conn, err := listener.Dial()
		if err != nil {
			t.Fatal(err)
		}
		client := ssh.NewClient(shakeHands(t, conn))
		for range 50 { // the client also replies to those of the server
			if ok, _, err := client.SendRequest("keepalive@openssh.com", true, nil); !ok || err != nil {
				t.Fatal(ok, err)
			}
			time.Sleep(10 * time.Second)
		}
	})
}
