package guest

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"switchyard/activities/executor"
)

const (
	// lingerWait is how long Close lets pending writes take.
	lingerWait = 30 * time.Second
	// brokenWait bounds the check whether a connection has broken.
	brokenWait = 2 * time.Second
)

// errBroken reports that a stream ended because its connection broke.
var errBroken = errors.New("the connection to the machine has broken")

// stream turns a channel into a net.Conn that can half-close. An ssh.Channel has no deadlines, its calls wait for an
// unresponsive machine even after a Close, and it reports a broken connection as the end of the data.
type stream struct {
	// reads and writes are each one end of a pipe.
	reads, writes net.Conn
	local, remote net.Addr
	closed        chan struct{}
	closeOnce     sync.Once
	// broken is set before reads ends.
	broken error
	// over is closed with the channel. exit, which is set before that, is the status of a session's program.
	over chan struct{}
	exit executor.ExitStatus
}

// newStream takes over a channel that has not been read from, and its requests.
func newStream(c *channel, local, remote net.Addr) *stream {
	reads, arrived := net.Pipe()
	leaves, writes := net.Pipe()
	s := &stream{reads: reads, writes: writes, local: local, remote: remote, closed: make(chan struct{}), over: make(chan struct{})}
	go func() {
		defer close(s.over)
		for r := range c.requests {
			if status, ok := exitOf(r); ok {
				s.exit = status
			}
			if r.WantReply {
				_ = r.Reply(false, nil)
			}
		}
	}()
	read, written := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(read)
		if _, err := io.Copy(arrived, c); err == nil && c.isBroken(s.over) {
			s.broken = errBroken
		}
		_ = arrived.Close()
	}()
	go func() {
		defer close(written)
		_, err := io.Copy(c, leaves)
		_ = leaves.Close()
		if err == nil {
			_ = c.CloseWrite()
		}
	}()
	go func() {
		defer c.release()
		select {
		case <-s.over:
		case <-s.closed:
			select {
			case <-written:
			case <-time.After(lingerWait):
			}
		case <-read:
			select {
			case <-written:
			case <-s.over:
			}
		}
		_ = c.Close()
		<-s.over
		_ = leaves.Close()
		<-read // before the connection may be closed as unused, which would look broken
	}()
	return s
}

// isBroken reports whether a channel ended with its connection rather than by the other side. over is closed with the
// channel.
func (c *channel) isBroken(over <-chan struct{}) bool {
	select {
	case <-over:
	default:
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), brokenWait)
	defer cancel()
	return c.connection.ping(ctx) != nil && ctx.Err() == nil
}

// Read reads received data, in order. It returns errBroken instead of io.EOF if the connection broke.
func (s *stream) Read(b []byte) (int, error) {
	n, err := s.reads.Read(b)
	if err == io.EOF && s.broken != nil {
		err = s.broken
	}
	return n, err
}

// Write sends data.
func (s *stream) Write(b []byte) (int, error) { return s.writes.Write(b) }

// CloseWrite ends the sent data.
func (s *stream) CloseWrite() error { return s.writes.Close() }

// Close ends both directions. Pending data is still sent.
func (s *stream) Close() error {
	s.closeOnce.Do(func() { close(s.closed) })
	return errors.Join(s.reads.Close(), s.writes.Close())
}

// LocalAddr returns the address of this side.
func (s *stream) LocalAddr() net.Addr { return s.local }

// RemoteAddr returns the address of the other side.
func (s *stream) RemoteAddr() net.Addr { return s.remote }

// SetDeadline sets both deadlines.
func (s *stream) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// SetReadDeadline sets the read deadline.
func (s *stream) SetReadDeadline(t time.Time) error { return s.reads.SetReadDeadline(t) }

// SetWriteDeadline sets the write deadline.
func (s *stream) SetWriteDeadline(t time.Time) error { return s.writes.SetWriteDeadline(t) }
