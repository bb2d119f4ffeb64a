package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"

	"switchyard/activities/sessions/wire"
	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// proofHeader carries the proof that the client is a gateway of the deployment; the proof is made for proofPurpose.
	proofHeader, proofPurpose = "Switchyard-Peer", "sessions"
	// peerTimeout bounds dialling another gateway. It is shorter than patience, because the node may connect here meanwhile.
	peerTimeout = 5 * time.Second
	// awayCode is the code with which a peer answers that the node has left it.
	awayCode = "unavailable"
)

// peer is another gateway with the connection to it.
type peer struct {
	mu      sync.Mutex // held while dialling
	session *wire.Session
}

// errPeerAway wraps the error if the gateway named in the store cannot reach the node.
type errPeerAway struct{ error }

// Unwrap returns the cause.
func (e errPeerAway) Unwrap() error { return e.error }

func isAway(err error) bool {
	_, away := errors.AsType[errPeerAway](err)
	return away
}

// openAtPeer opens a stream on a node that is connected to another gateway.
func (h *Hub) openAtPeer(ctx context.Context, at *v1.LinkLocation, header *v1.SessionHeader) (wire.Conn, *v1.SessionReply, error) {
	session, err := h.peerSession(ctx, at)
	if err != nil {
		return nil, nil, errPeerAway{unavailable("node %s is connected to another gateway, %s, which is unreachable from this one (set --peer-url there): %v", header.GetNode(), at.GetUrl(), err)}
	}
	conn, err := session.Open(ctx)
	if err != nil {
		return nil, nil, err
	}
	reply, err := wire.Request(ctx, conn, header)
	if refused, ok := errors.AsType[*wire.RefusedError](err); ok && refused.Code == awayCode {
		return nil, nil, errPeerAway{codedError(err)}
	}
	if err != nil {
		return nil, nil, err
	}
	return conn, reply, nil
}

// peerSession returns the connection to the gateway of a location, and dials it if necessary.
func (h *Hub) peerSession(ctx context.Context, at *v1.LinkLocation) (*wire.Session, error) {
	if at.GetUrl() == "" {
		return nil, errors.New("it has no URL for other gateways")
	}
	h.mu.Lock()
	p := h.peers[at.GetGateway()]
	if p == nil {
		p = &peer{}
		h.peers[at.GetGateway()] = p
	}
	h.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session != nil {
		select {
		case <-p.session.Done():
		default:
			return p.session, nil
		}
	}
	proof, err := h.config.Signer.Prove(ctx, proofPurpose, at.GetGateway())
	if err != nil {
		return nil, err
	}
	dialling, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	conn, err := wire.Dial(dialling, wire.DialOptions{URL: at.GetUrl(), Path: PeersPath, TLS: h.config.PeerTLS, Header: http.Header{proofHeader: {proof}}})
	if err != nil {
		return nil, err
	}
	select {
	case <-h.stopping:
		_ = conn.Close()
		return nil, errStopping()
	default:
	}
	p.session = wire.NewSession(conn, true)
	p.session.DescribeLoss("the link to gateway " + at.GetUrl() + " was lost; running tasks continue")
	go refuseStreams(p.session)
	return p.session, nil
}

// closePeers closes the connections to other gateways.
func (h *Hub) closePeers() {
	h.mu.Lock()
	peers := h.peers
	h.peers = map[string]*peer{}
	h.mu.Unlock()
	for _, p := range peers {
		p.mu.Lock()
		if p.session != nil {
			_ = p.session.Close()
		}
		p.mu.Unlock()
	}
}

// Peers serves connections of other gateways. Their proof is the only authentication that it needs.
func (h *Hub) Peers() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h.admitPeer(r); err != nil {
			h.config.Recorder.NoteRequest(r, err)
			auth.Refuse(w, r, err)
			return
		}
		leave, err := h.enter()
		if err != nil {
			auth.Refuse(w, r, err)
			return
		}
		defer leave()
		session, err := accept(w, r)
		if err != nil {
			return
		}
		// There is no token to expire, so nothing ends the session early.
		h.joinAll(r.Context(), context.Background(), session, h.openForPeer)
	})
}

// admitPeer returns an error if the request does not prove to come from a gateway of the deployment.
func (h *Hub) admitPeer(r *http.Request) error {
	proof := r.Header.Get(proofHeader)
	if proof == "" {
		return connect.NewError(connect.CodeUnauthenticated, errors.New("this endpoint is for other gateways of the deployment"))
	}
	refused, err := h.config.Signer.CheckProof(r.Context(), proofPurpose, h.name, proof)
	switch {
	case err != nil:
		return connect.NewError(connect.CodeUnavailable, fmt.Errorf("check the proof of a gateway: %w", err))
	case refused != "":
		return connect.NewError(connect.CodeUnauthenticated, errors.New("the proof is invalid: "+refused))
	}
	return nil
}

// openForPeer opens a stream for another gateway, which has already authorised it.
func (h *Hub) openForPeer(ctx context.Context, header *v1.SessionHeader) (wire.Conn, *v1.SessionReply, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	l := h.linkOf(header.GetNode())
	if l == nil {
		return nil, nil, notConnected(header.GetNode())
	}
	conn, reply, err := h.openLocal(ctx, l, header)
	if err != nil {
		return nil, nil, codedError(err)
	}
	return conn, reply, nil
}
