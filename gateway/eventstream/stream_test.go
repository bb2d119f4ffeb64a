package eventstream

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const (
	keepAlive = time.Minute
	timeout   = 10 * time.Second
)

// onePipe is a listener that accepts one connection, which lies in memory.
type onePipe struct {
	net.Conn
	accepted bool
	closed   chan struct{}
}

func (l *onePipe) Accept() (net.Conn, error) {
	if l.accepted {
		<-l.closed
		return nil, net.ErrClosed
	}
	l.accepted = true
	return l.Conn, nil
}

func (l *onePipe) Close() error {
	close(l.closed)
	return nil
}

func (l *onePipe) Addr() net.Addr { return l.Conn.LocalAddr() }

// serve serves one stream, and returns the connection of its client, which has sent its request.
func serve(t *testing.T, handle func(s *Stream)) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	listener := &onePipe{Conn: server, closed: make(chan struct{})}
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s := New(w, keepAlive, timeout)
		handle(s)
		s.Close("")
	})}
	ended := make(chan struct{})
	go func() { _ = web.Serve(listener); close(ended) }()
	t.Cleanup(func() {
		_, _ = client.Close(), web.Close()
		<-ended
	})
	if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: yard\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return client
}

// TestStalledClientIsDropped checks that a client that reads slowly keeps its stream, and that one that stops reading
// loses it after the write time-out.
func TestStalledClientIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const frames = 3
		var dropped time.Time
		done := make(chan error, 1)
		client := serve(t, func(s *Stream) {
			err := s.Begin()
			for err == nil {
				err = s.Write(Frame("e", "", []byte(`{}`)))
			}
			dropped = time.Now()
			done <- err
		})
		lines := bufio.NewReader(client)
		for seen := 0; seen < frames; {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(line, "event:") {
				seen++
				time.Sleep(timeout - time.Second)
			}
		}
		stalled := time.Now()
		err := <-done
		if err == nil || !strings.Contains(err.Error(), "stalled") {
			t.Errorf("the error is %v", err)
		}
		if waited := dropped.Sub(stalled); waited <= 0 || waited > timeout {
			t.Errorf("the client was dropped after %s", waited)
		}
	})
}

// TestSilentStreamSendsComments checks that a comment follows each pause, so that proxies keep the connection.
func TestSilentStreamSendsComments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		client := serve(t, func(s *Stream) {
			if err := s.Begin(); err != nil {
				t.Error(err)
			}
			<-end
		})
		defer close(end)
		lines, began := bufio.NewReader(client), time.Now()
		for range 3 {
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				if line == ":\n" {
					break
				}
			}
			if pause := time.Since(began); pause != keepAlive {
				t.Errorf("a comment came after %s", pause)
			}
			began = time.Now()
		}
	})
}
