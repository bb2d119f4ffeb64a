package wire

import (
	"context"
	"errors"
	"io"
	"net"
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
	s := newSession(&stuck{a, make(chan struct{})}, true, times{ping: time.Hour, silence: time.Hour, write: 100 * time.Millisecond})
	if _, err := s.Open(t.Context()); !errors.Is(err, ErrLost) {
		t.Error(err)
	}
	isClosed(t, s.Done(), "a session with a stuck connection")
}

// TestStuckWriteEndsSession connects to a peer that reads nothing.
func TestStuckWriteEndsSession(t *testing.T) {
	for limit := 200 * time.Millisecond; ; limit *= 2 {
		a, _ := tcpPair(t)
		s := newSession(a, true, times{ping: time.Hour, silence: time.Hour, write: limit, probe: limit})
		c, err := s.Open(t.Context())
		other, otherErr := s.Open(t.Context())
		if err := errors.Join(err, otherErr); err != nil {
			if limit < patience { // a busy machine may delay the first writes
				continue
			}
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
		return
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestSilenceEndsSession(t *testing.T) {
	a, _ := tcpPair(t)
	s := newSession(a, false, times{ping: time.Hour, silence: 50 * time.Millisecond, write: time.Hour})
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

// TestIdleSessionsPing checks that each side of an idle session sends pings, so that no proxy takes the connection for dead.
func TestIdleSessionsPing(t *testing.T) {
	const typePing, flagReply = 2, 2
	for _, client := range []bool{true, false} {
		near, far := tcpPair(t)
		s := newSession(near, client, times{ping: 10 * time.Millisecond, silence: time.Hour, write: time.Hour})
		defer s.Close()
		for range 3 {
			frame := make([]byte, frameHeader)
			if _, err := io.ReadFull(far, frame); err != nil || frame[1] != typePing {
				t.Fatalf("a frame %v, error %v", frame, err)
			}
			frame[3] = flagReply
			if _, err := far.Write(frame); err != nil {
				t.Fatal(err)
			}
		}
	}
}
