package tunnel

import (
	"context"
	"sync"

	"switchyard/activities/sessions/wire"
	v1 "switchyard/proto/switchyard/v1"
)

// maxStreams bounds the streams of a client connection.
const maxStreams = 4096

// joinAll connects each stream of a session to the stream that open returns for it. The session ends with until or the hub,
// and joinAll returns once all streams have ended. open may use the values of ctx, but not its cancellation.
func (h *Hub) joinAll(ctx, until context.Context, session *wire.Session, open opener) {
	// The streams end with the session, not with until: they must outlive until to receive the reason.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var streams sync.WaitGroup
	streams.Go(func() {
		acceptStreams(session, &streams, func(conn wire.Conn, asked *v1.SessionHeader) { h.join(ctx, conn, asked, open) })
	})
	h.endWith(until, session)
	cancel()
	streams.Wait()
}

// acceptStreams serves the streams of a session until it ends.
func acceptStreams(session *wire.Session, streams *sync.WaitGroup, serve func(conn wire.Conn, header *v1.SessionHeader)) {
	for {
		conn, err := session.Accept()
		if err != nil {
			return
		}
		if session.Streams() > maxStreams {
			go wire.Refuse(conn, "resource_exhausted", "the connection has reached its limit of open sessions")
			continue
		}
		streams.Go(func() {
			header, err := wire.ReadHeader(conn)
			if err != nil {
				wire.Abort(conn, "")
				return
			}
			serve(conn, header)
		})
	}
}

// opener opens the other end of a stream for its header.
type opener func(ctx context.Context, header *v1.SessionHeader) (wire.Conn, *v1.SessionReply, error)

// join answers a stream and connects it to the stream that open returns, until both have ended.
func (h *Hub) join(ctx context.Context, conn wire.Conn, header *v1.SessionHeader, open opener) {
	node, reply, err := open(ctx, header)
	if err != nil {
		refuse(conn, err)
		return
	}
	if err := wire.WriteMessage(conn, reply); err != nil {
		wire.Abort(node, "")
		wire.Abort(conn, "")
		return
	}
	wire.Join(conn, node)
}
