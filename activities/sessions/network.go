package sessions

import (
	"context"
	"fmt"
	"net"
	"sync"

	"switchyard/activities/sessions/wire"
)

// maxAccepted bounds the open connections of a listening port; further connections wait in the kernel.
const maxAccepted = 1024

// connect relays a connection to a port of the attempt.
func (s *session) connect(ctx context.Context) {
	conn, err := s.in.Dial(ctx, int(s.header.GetPort()))
	if err != nil {
		s.refuse(err)
		return
	}
	defer func() { _ = conn.Close() }()
	far, ok := conn.(wire.Conn)
	if !ok {
		s.refuse(fmt.Errorf("a connection to port %d cannot be half-closed", s.header.GetPort()))
		return
	}
	if s.accept(0) == nil {
		wire.Join(s.conn, far)
	}
}

// listen opens a stream for each connection to a port of the attempt, until the client closes the session.
func (s *session) listen(ctx context.Context) {
	listener, err := s.in.Listen(ctx, int(s.header.GetPort()))
	if err != nil {
		s.refuse(err)
		return
	}
	defer func() { _ = listener.Close() }()
	port := int(s.header.GetPort())
	if address, ok := listener.Addr().(*net.TCPAddr); ok {
		port = address.Port
	}
	if s.accept(port) != nil {
		return
	}
	streams := wire.NewSession(s.conn, false)
	var running sync.WaitGroup
	defer running.Wait()
	defer func() { _ = streams.Close() }()
	running.Go(func() {
		<-streams.Done()
		_ = listener.Close()
	})
	room := make(chan struct{}, maxAccepted)
	for {
		room <- struct{}{} // freed when the session ends, at the latest
		conn, err := listener.Accept()
		if err != nil {
			return // closed by the client, or by the end of the attempt
		}
		running.Go(func() {
			defer func() { <-room }()
			defer func() { _ = conn.Close() }()
			far, ok := conn.(wire.Conn)
			if !ok {
				return
			}
			if stream, err := streams.Open(ctx); err == nil {
				wire.Join(stream, far)
			}
		})
	}
}
