package stack

import (
	"context"
	"net"
	"sync"

	"switchyard/activities/sessions"
	"switchyard/activities/sessions/link"
	"switchyard/activities/sessions/wire"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
)

// startLink connects a node to the gateway of this process, or to that of its fleet, so that sessions can reach its
// attempts. It returns nil if there is no gateway.
func (s *Stack) startLink(cfg Config, name string, n *workers.Node) *link.Link {
	o := link.Options{
		Gateways: s.gateways, Node: name, Incarnation: n.Incarnation(), Logger: cfg.Logger,
		Serve: func(ctx context.Context, conn wire.Conn, h *v1.SessionHeader) { sessions.Serve(ctx, conn, h, n) },
	}
	switch {
	case cfg.Gateway != "":
		o.Dial = func(context.Context) (net.Conn, error) {
			hub := s.sessions.Load()
			if hub == nil {
				return nil, link.ErrNotYet
			}
			return hub.Attach(name)
		}
	case s.gateways == nil:
		return nil
	}
	return link.Start(o)
}

// closeLinks closes links concurrently.
func closeLinks(links []*link.Link) {
	var closing sync.WaitGroup
	for _, l := range links {
		if l != nil {
			closing.Go(l.Close)
		}
	}
	closing.Wait()
}
