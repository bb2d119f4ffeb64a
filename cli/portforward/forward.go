package portforward

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"switchyard/activities/sessions/wire"
)

const (
	// maxConns bounds the open connections of one port.
	maxConns = 1000
	// acceptPause is how long a port waits when the process has no free file descriptors.
	acceptPause = 100 * time.Millisecond
)

// Forward joins the connections of one local port to connections to a port of a task.
type Forward struct {
	// Dial opens a connection to the port of the task.
	Dial func(ctx context.Context) (net.Conn, error)
	// Refused is called with the error of each failed Dial, from several goroutines at once.
	Refused func(error)
}

// Serve accepts connections until ctx ends, then closes the listener and all connections and returns nil. If the
// listener fails, it returns that error.
func (f *Forward) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	var conns sync.WaitGroup
	defer conns.Wait()
	defer cancel()
	room := make(chan struct{}, maxConns)
	for {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		conn, err := l.Accept()
		if err != nil {
			<-room
			if ctx.Err() != nil {
				return nil
			}
			if !isTemporary(err) {
				return err
			}
			select {
			case <-time.After(acceptPause):
			case <-ctx.Done():
			}
			continue
		}
		conns.Go(func() {
			defer func() { <-room }()
			f.join(ctx, conn)
		})
	}
}

// join connects one connection. It turns a refusal into a reset, so that the program does not take it for an empty
// reply.
func (f *Forward) join(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	near, ok := conn.(wire.Conn)
	if !ok {
		return // unreachable: a TCP listener accepts only TCP connections
	}
	remote, err := f.Dial(ctx)
	if err != nil {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		if ctx.Err() == nil {
			f.Refused(err)
		}
		return
	}
	defer remote.Close()
	far, ok := remote.(wire.Conn)
	if !ok {
		far = wholeConn{remote}
	}
	defer context.AfterFunc(ctx, func() {
		_ = conn.Close()
		_ = remote.Close()
	})()
	wire.Join(near, far)
}

// wholeConn is a connection without half-close.
type wholeConn struct{ net.Conn }

// CloseWrite closes the connection.
func (c wholeConn) CloseWrite() error { return c.Close() }

// isTemporary reports whether a later Accept may succeed: the process has too many open files, or the peer has gone.
func isTemporary(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED)
}
