package tunnel

import (
	"context"
	"net/http"
	"sync"

	"switchyard/activities/sessions/wire"
	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
)

// maxStreams bounds the streams of a connection of a client.
const maxStreams = 4096

// Sessions serves clients that connect. It stands behind what authenticates them.
func (h *Hub) Sessions() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h.refuseObserver(); err != nil {
			auth.Refuse(w, r, err)
			return
		}
		leave, err := h.enterClient()
		if err != nil {
			auth.Refuse(w, r, err)
			return
		}
		defer leave()
		session, err := accept(w, r)
		if err != nil {
			return
		}
		// What is opened ends with the session; the context of the request may end before its streams have been told why.
		ctx, cancel := context.WithCancel(WithAddress(context.WithoutCancel(r.Context()), r.RemoteAddr))
		defer cancel()
		var streams sync.WaitGroup
		streams.Go(func() {
			acceptStreams(session, &streams, func(conn wire.Conn, asked *v1.SessionHeader) {
				h.join(ctx, conn, asked, h.Open)
			})
		})
		h.endWith(r.Context(), session)
		cancel()
		streams.Wait()
	})
}

// acceptStreams serves the streams of a session until it ends.
func acceptStreams(session *wire.Session, streams *sync.WaitGroup, serve func(conn wire.Conn, header *v1.SessionHeader)) {
	for {
		conn, err := session.Accept()
		if err != nil {
			return
		}
		if session.Streams() > maxStreams {
			go wire.Refuse(conn, "resource_exhausted", "the connection has as many sessions open as one may have")
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

// opener opens a stream for a header.
type opener func(ctx context.Context, header *v1.SessionHeader) (wire.Conn, *v1.SessionReply, error)

// join answers a stream, and connects it with the one that open returns, until both have ended.
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
