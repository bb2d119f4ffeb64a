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
	// window is the maximum amount of data of a stream in flight, in bytes. It allows 160 Mbit/s at 200 ms.
	window = 4 << 20
	// backlog is the number of streams that may wait for Accept.
	backlog = 512
	// shrinkInterval is how long a stream must be idle before its buffer is released.
	shrinkInterval = 30 * time.Second
)

// Session multiplexes streams over a connection. Both sides may open streams. A Session is safe for concurrent use.
type Session struct {
	mux   *yamux.Session
	probe time.Duration // see times

	mu      sync.Mutex
	streams map[*stream]struct{}
	lost    string // error text of streams when the connection is lost
	shrink  *time.Timer
}

// NewSession starts a session on a connection and takes ownership of it. Exactly one side must be the client. The session ends
// when the connection is lost or stuck: at most 45 seconds after the last data from the other side.
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
	config.StreamCloseTimeout = 0 // a stream may stay half-closed indefinitely
	config.LogOutput = io.Discard
	s := &Session{streams: map[*stream]struct{}{}, lost: ErrLost.Error(), probe: t.probe}
	start := yamux.Server
	if client {
		start = yamux.Client
	}
	s.mux, _ = start(&transport{Conn: conn, write: t.write, read: t.silence}, config) // fails only for an invalid configuration
	s.shrink = time.AfterFunc(shrinkInterval, s.shrinkIdle)
	go func() {
		<-s.mux.CloseChan()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.shrink.Stop()
	}()
	return s
}

// DescribeLoss sets the error text of streams for the loss of the connection, such as "the link to node a was lost".
func (s *Session) DescribeLoss(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = text
}

// Open opens a stream. It does not wait for the other side to accept the stream.
func (s *Session) Open(ctx context.Context) (Conn, error) {
	type result struct {
		y   *yamux.Stream
		err error
	}
	opened := make(chan result, 1)
	go func() { // ends with the session, at the latest
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

// Accept returns the next stream that the other side has opened. Callers should accept promptly, because the backlog is bounded.
// An error means that the session has ended.
func (s *Session) Accept() (Conn, error) {
	y, err := s.mux.AcceptStream()
	if err != nil {
		err = s.failure(err)
		_ = s.Close()
		return nil, err
	}
	return s.newStream(y), nil
}

// failure converts an error of yamux to the error of a stream. A write time-out ends the session, because yamux would leave it
// open.
func (s *Session) failure(err error) error {
	if errors.Is(err, yamux.ErrConnectionWriteTimeout) {
		go func() { _ = s.Close() }() // waits for yamux's goroutines
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &LostError{Reason: s.lost}
}

// Close ends the session and its streams immediately. A second Close is a no-op.
func (s *Session) Close() error { return s.mux.Close() }

// abortTimeout bounds how long CloseWith waits for a connection that is stuck.
const abortTimeout = 5 * time.Second

// CloseWith aborts all streams with a reason, which reaches their other sides if possible, and closes the session.
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
	case <-time.After(abortTimeout):
	}
	return s.Close()
}

// Done returns a channel that is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.mux.CloseChan() }

// Streams returns the number of open streams.
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

// shrinkIdle releases the buffers of streams that have received nothing since the last call.
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
