package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// stuck is a connection whose writes block until their channel is closed.
type stuck struct {
	net.Conn
	write chan struct{}
}

func (s *stuck) SetWriteDeadline(time.Time) error { return nil }

func (s *stuck) Write([]byte) (int, error) {
	<-s.write
	return 0, net.ErrClosed
}

func (s *stuck) Close() error {
	close(s.write)
	return s.Conn.Close()
}

// TestWriteTimeoutEndsSession checks that a write that neither completes nor fails ends the session.
func TestWriteTimeoutEndsSession(t *testing.T) {
	a, _ := tcpPair(t)
	s := newSession(&stuck{a, make(chan struct{})}, true, times{time.Hour, time.Hour, 100 * time.Millisecond})
	if _, err := s.Open(t.Context()); !errors.Is(err, ErrLost) {
		t.Error(err)
	}
	isClosed(t, s.Done(), "a session with a stuck connection")
}

// TestStuckWriteEndsSession connects to a peer that reads nothing.
func TestStuckWriteEndsSession(t *testing.T) {
	t.Parallel()
	a, _ := tcpPair(t)
	s := newSession(a, true, times{time.Hour, time.Hour, 10 * time.Second}) // longer than a busy machine delays the first writes
	c, err := s.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = a.SetWriteBuffer(4 << 10)
	go func() {
		for {
			if _, err := c.Write(make([]byte, maxBlock)); err != nil {
				return
			}
		}
	}()
	_, _ = io.Copy(struct{ io.Writer }{other}, endless{})
	isClosed(t, s.Done(), "a session whose peer reads nothing")
	if _, err := other.Read(make([]byte, 1)); !errors.Is(err, ErrLost) {
		t.Error(err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestSilenceEndsSession(t *testing.T) {
	a, _ := tcpPair(t)
	s := newSession(a, false, times{time.Hour, 50 * time.Millisecond, time.Hour})
	if _, err := s.Accept(); !errors.Is(err, ErrLost) {
		t.Error(err)
	}
	isClosed(t, s.Done(), "a session without a sign of the other side")
}

func TestBothSidesOpenStreams(t *testing.T) {
	client, server := sessionPair(t)
	for _, ends := range [][2]*Session{{client, server}, {server, client}} {
		opened, accepted := openStream(t, ends[0], ends[1])
		_, _ = io.WriteString(opened, "hello")
		_ = opened.Close()
		if got, err := io.ReadAll(accepted); string(got) != "hello" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		_ = accepted.Close()
	}
	for client.Streams()+server.Streams() > 0 {
		time.Sleep(time.Millisecond)
	}
	_ = server.Close()
	if _, err := client.Accept(); !errors.Is(err, ErrLost) {
		t.Error(err)
	}
	if _, err := client.Open(context.Background()); !errors.Is(err, ErrLost) {
		t.Error(err)
	}
}

// TestSessionWithinStream nests a session in a stream, as the kind "listen" does.
func TestSessionWithinStream(t *testing.T) {
	a, b := streamPair(t)
	client, server := NewSession(a, true), NewSession(b, false)
	opened, accepted := openStream(t, server, client)
	_, _ = io.WriteString(opened, "nested")
	_ = opened.Close()
	if got, err := io.ReadAll(accepted); string(got) != "nested" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	_ = client.Close()
	isClosed(t, server.Done(), "the other side of a closed session")
}

// TestPingsKeepIdleSessionsAlive connects through a proxy that cuts connections that are silent in both directions
// for some time.
func TestPingsKeepIdleSessionsAlive(t *testing.T) {
	const patienceOfProxy = 10 * time.Second // longer than a busy machine delays a ping
	for name, c := range map[string]struct {
		ping  time.Duration
		lives bool
	}{"with pings": {50 * time.Millisecond, true}, "without": {time.Hour, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			near, front := tcpPair(t)
			back, far := tcpPair(t)
			var pipes sync.WaitGroup
			for _, pair := range [][2]net.Conn{{front, back}, {back, front}} {
				pipes.Go(func() {
					defer front.Close()
					defer back.Close()
					buffer := make([]byte, 4<<10)
					for {
						_ = pair[0].SetReadDeadline(time.Now().Add(patienceOfProxy))
						n, err := pair[0].Read(buffer)
						if err != nil {
							return
						}
						if _, err := pair[1].Write(buffer[:n]); err != nil {
							return
						}
					}
				})
			}
			defer pipes.Wait()
			usual := times{c.ping, time.Hour, time.Hour}
			client, server := newSession(near, true, usual), newSession(far, false, usual)
			defer client.Close()
			defer server.Close()
			opened, accepted := openStream(t, client, server)
			if !c.lives {
				isClosed(t, client.Done(), "a silent session behind a proxy")
				return
			}
			select {
			case <-client.Done():
				t.Fatal("an idle session is cut")
			case <-time.After(patienceOfProxy + patienceOfProxy/2):
			}
			_, _ = io.WriteString(opened, "still")
			_ = opened.CloseWrite()
			if got, err := io.ReadAll(accepted); string(got) != "still" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}
