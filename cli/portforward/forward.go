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
	// maxConns bounds the connections of one port that are open at once.
	maxConns = 1000
	// acceptPause is how long a port rests when the system has no more files for connections.
	acceptPause = 100 * time.Millisecond
)

// Forward joins the connections of one port of this machine with connections to a port of a task.
type Forward struct {
	// Dial opens a connection to the port of the task.
	Dial func(ctx context.Context) (net.Conn, error)
	// Refused is called with the error of each Dial that has failed, from several goroutines at once.
	Refused func(error)
}

// Serve accepts connections until ctx ends, and then closes the listener and all connections. It returns nil then, else the
// error of the listener.
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

// join connects one connection. A refusal becomes a reset, so that its program does not take it for an empty answer.
func (f *Forward) join(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	near, ok := conn.(wire.Conn)
	if !ok {
		return // a listener of TCP accepts no other ones
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

// wholeConn is a connection that ends in both directions at once.
type wholeConn struct{ net.Conn }

// CloseWrite closes the connection.
func (c wholeConn) CloseWrite() error { return c.Close() }

// isTemporary reports whether a later Accept may succeed: the process has too many files open, or the other end has gone.
func isTemporary(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED)
}
