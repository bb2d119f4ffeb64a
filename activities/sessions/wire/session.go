package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

const (
	// window is how much of a stream may be on its way, in bytes: 160 Mbit/s at 200 ms.
	window = 4 << 20
	// backlog is how many streams may wait to be accepted.
	backlog = 512
	// shrinkInterval is how long a stream is idle before its buffer is given back.
	shrinkInterval = 30 * time.Second
)

// Session is a connection with streams in it. Both sides may open streams. Its methods may be called from several goroutines at
// once.
type Session struct {
	mux *yamux.Session

	mu      sync.Mutex
	streams map[*stream]struct{}
	lost    string // what streams say when the connection is lost
	shrink  *time.Timer
}

// NewSession makes a session of a connection, which it owns. One side is the client, the other one is not. A session ends when
// its connection is lost or stuck: after 45 seconds at most without a sign of the other side.
func NewSession(conn net.Conn, client bool) *Session {
	return newSession(conn, client, usualTimes)
}

func newSession(conn net.Conn, client bool, t times) *Session {
	config := yamux.DefaultConfig()
	config.AcceptBacklog = backlog
	config.KeepAliveInterval = t.ping
	config.ConnectionWriteTimeout = t.write
	config.MaxStreamWindowSize = window
	config.StreamOpenTimeout = 0
	config.StreamCloseTimeout = 0 // a stream stays half-closed for as long as it likes
	config.LogOutput = io.Discard
	s := &Session{streams: map[*stream]struct{}{}, lost: ErrLost.Error()}
	start := yamux.Server
	if client {
		start = yamux.Client
	}
	s.mux, _ = start(&transport{Conn: conn, write: t.write, read: t.silence}, config) // fails for a wrong config alone
	s.shrink = time.AfterFunc(shrinkInterval, s.shrinkIdle)
	go func() {
		<-s.mux.CloseChan()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.shrink.Stop()
	}()
	return s
}

// DescribeLoss sets what the errors of streams say when the connection is lost, such as "the link to node a was lost".
func (s *Session) DescribeLoss(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = text
}

// Open opens a stream. It does not wait for the other side to accept it.
func (s *Session) Open(ctx context.Context) (Conn, error) {
	type result struct {
		y   *yamux.Stream
		err error
	}
	opened := make(chan result, 1)
	go func() { // ends with the session at the latest
		y, err := s.mux.OpenStream()
		opened <- result{y, err}
	}()
	select {
	case r := <-opened:
		if r.err != nil {
			return nil, s.failure(r.err)
		}
		return s.newStream(r.y), nil
	case <-ctx.Done():
		go func() {
			if r := <-opened; r.err == nil {
				_ = r.y.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// Accept returns the next stream that the other side has opened. Accept it promptly: those that wait are bounded. An error means
// that the session has ended.
func (s *Session) Accept() (Conn, error) {
	y, err := s.mux.AcceptStream()
	if err != nil {
		err = s.failure(err)
		_ = s.Close()
		return nil, err
	}
	return s.newStream(y), nil
}

// failure returns the error of a stream for one of yamux. A write that has timed out ends the session, which yamux leaves open.
func (s *Session) failure(err error) error {
	if errors.Is(err, yamux.ErrConnectionWriteTimeout) {
		go func() { _ = s.Close() }() // waits for yamux's goroutines
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &LostError{Reason: s.lost}
}

// Close ends the session and its streams at once. A second Close does nothing.
func (s *Session) Close() error { return s.mux.Close() }

// CloseWith gives up all streams, with a reason that their other sides are told if they can be reached, and closes the session.
func (s *Session) CloseWith(reason string) error {
	s.mu.Lock()
	var open []*stream
	for c := range s.streams {
		open = append(open, c)
	}
	s.mu.Unlock()
	var aborts sync.WaitGroup
	for _, c := range open {
		aborts.Go(func() { c.Abort(reason) })
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		aborts.Wait()
	}()
	select {
	case <-done:
	case <-time.After(time.Second):
	}
	return s.Close()
}

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.mux.CloseChan() }

// Streams returns how many streams are open.
func (s *Session) Streams() int { return s.mux.NumStreams() }

func (s *Session) newStream(y *yamux.Stream) *stream {
	c := &stream{session: s, y: y}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[c] = struct{}{}
	return c
}

func (s *Session) forget(c *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, c)
}

// shrinkIdle gives back the buffers of streams that have brought nothing since it was called last.
func (s *Session) shrinkIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.mux.CloseChan():
		return
	default:
	}
	for c := range s.streams {
		if read := c.bytesRead.Load(); read == c.readBefore {
			c.y.Shrink()
		} else {
			c.readBefore = read
		}
	}
	s.shrink.Reset(shrinkInterval)
}
