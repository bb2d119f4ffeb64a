package taskrunner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// reservePatience is how long a node waits for the room that a member of a gang needs, which an attempt may be about to free.
	reservePatience = 5 * time.Second
	// reserveFor is how long a node keeps the place of a member whose attempt does not come: longer than the run waits for the
	// places of the others.
	reserveFor = 45 * time.Second
)

// reservedPlaces holds the places of members of gangs whose attempts have not come yet. The zero value holds none. It is safe for
// concurrent use.
type reservedPlaces struct {
	mu     sync.Mutex
	places map[attemptKey]*reservedPlace
}

// reservedPlace is a place on the node, and a free TCP port if the member has rank 0.
type reservedPlace struct {
	release func()       // nil if the place was given up: it is not reserved again
	port    net.Listener // nil for other ranks
	expiry  *time.Timer
}

// Reserve reserves the place of a member of a gang until its attempt comes, at most for 45 s; with ExecuteRequest.stop the node gives
// the place up, and a request for it that comes later or still waits is refused. It is idempotent. A node that has no place answers
// why; an error is a fault of the node.
func (n *Node) Reserve(ctx context.Context, req *historyv1.ExecuteRequest) (*historyv1.ReserveResponse, error) {
	key := keyOf(req, membersOf(req))
	if req.GetStop() {
		n.reserved.giveUp(key)
		return &historyv1.ReserveResponse{}, nil
	}
	if p := n.reserved.find(key); p != nil {
		return n.reservedResponse(p), nil
	}
	if refusal := n.refuse(req); refusal != nil {
		return &historyv1.ReserveResponse{Refused: refusal.GetReason(), Error: refusal.GetError()}, nil
	}
	if cause := n.attempts.drainCause(); cause != nil {
		return &historyv1.ReserveResponse{Refused: v1.ReasonDraining, Error: cause.Error()}, nil
	}
	p := &reservedPlace{}
	if req.GetIndex() == 0 {
		var err error
		if p.port, err = net.Listen("tcp", ":0"); err != nil {
			return nil, fmt.Errorf("find a free port for %s: %w", req.GetTask(), err)
		}
	}
	short, cancel := context.WithTimeout(ctx, reservePatience)
	defer cancel()
	release, err := n.Room.Acquire(short, req)
	if err != nil {
		p.closePort()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		text := err.Error()
		if errors.Is(err, context.DeadlineExceeded) {
			text = fmt.Sprintf("node %s had no room within %v", n.Name, reservePatience)
		}
		return &historyv1.ReserveResponse{Refused: v1.ReasonNoRoom, Error: text}, nil
	}
	p.release = release
	if other := n.reserved.add(key, p); other != p {
		release()
		p.closePort()
		p = other
	}
	return n.reservedResponse(p), nil
}

func (n *Node) reservedResponse(p *reservedPlace) *historyv1.ReserveResponse {
	if p.release == nil {
		return &historyv1.ReserveResponse{Refused: v1.ReasonGang, Error: "the place was given up before"}
	}
	res := &historyv1.ReserveResponse{Host: n.Host}
	if p.port != nil {
		res.Port = int32(p.port.Addr().(*net.TCPAddr).Port)
	}
	return res
}

// acquire waits for the place of an attempt on the node. A member of a gang has its place already.
func (n *Node) acquire(ctx context.Context, a *attempt) (release func(), err error) {
	if p := n.reserved.remove(a.key); p != nil && p.release != nil {
		return p.release, nil
	}
	return n.Room.Acquire(ctx, a.req)
}

// giveUp releases a place, and keeps it from being reserved again: the request for it may have been overtaken.
func (s *reservedPlaces) giveUp(key attemptKey) {
	s.mu.Lock()
	p := s.take(key)
	s.put(key, &reservedPlace{})
	s.mu.Unlock()
	p.expire()
}

// add adds a place until it expires, unless there is one with the same key. It returns the one that there is.
func (s *reservedPlaces) add(key attemptKey, p *reservedPlace) *reservedPlace {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.places[key]; other != nil {
		return other
	}
	s.put(key, p)
	return p
}

func (s *reservedPlaces) put(key attemptKey, p *reservedPlace) {
	if s.places == nil {
		s.places = map[attemptKey]*reservedPlace{}
	}
	s.places[key] = p
	p.expiry = time.AfterFunc(reserveFor, func() { s.remove(key).expire() })
}

// expire releases a removed place, if there was one.
func (p *reservedPlace) expire() {
	if p != nil && p.release != nil {
		p.release()
	}
}

func (s *reservedPlaces) find(key attemptKey) *reservedPlace {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places[key]
}

// remove removes a place, closes its listener and returns it, or nil if there is none. The caller must release it.
func (s *reservedPlaces) remove(key attemptKey) *reservedPlace {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take(key)
}

func (s *reservedPlaces) take(key attemptKey) *reservedPlace {
	p := s.places[key]
	if p == nil {
		return nil
	}
	delete(s.places, key)
	p.expiry.Stop()
	p.closePort()
	return p
}

func (p *reservedPlace) closePort() {
	if p.port != nil {
		p.port.Close()
	}
}
