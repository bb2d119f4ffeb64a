package ticket

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"maps"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// Lifetime is how long a ticket is valid.
	Lifetime = time.Minute
	// clockSkew is the tolerated difference between the clocks of a gateway and a node.
	clockSkew = 5 * time.Minute
	// keyBytes is the length of a key, idBytes the length of a ticket's id.
	keyBytes, idBytes = 32, 16
)

// NewKey returns a new random key for a link.
func NewKey() []byte { return random(keyBytes) }

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

// Sign adds a ticket to a header. The header must not be modified afterwards.
func Sign(key []byte, h *v1.SessionHeader, now time.Time) error {
	h.Ticket = &v1.SessionTicket{Id: random(idBytes), ExpiresAt: timestamppb.New(now.Add(Lifetime))}
	signature, err := mac(key, h)
	h.Ticket.Signature = signature
	return err
}

// mac returns the signature of a header with its ticket.
func mac(key []byte, h *v1.SessionHeader) ([]byte, error) {
	h = proto.CloneOf(h)
	h.Ticket.Signature = nil
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(h)
	if err != nil {
		return nil, err
	}
	m := hmac.New(sha256.New, key)
	_, _ = m.Write(text) // never fails
	return m.Sum(nil), nil
}

// Checker checks the tickets of a link. It is safe for concurrent use.
type Checker struct {
	key []byte
	now func() time.Time

	mu   sync.Mutex
	used map[string]time.Time // by ticket id: when the ticket can no longer be reused
	// swept is when expired tickets were last removed from used.
	swept time.Time
}

// NewChecker returns a checker of tickets that are signed with a key.
func NewChecker(key []byte, now func() time.Time) (*Checker, error) {
	if len(key) != keyBytes {
		return nil, errors.New("the gateway has sent no key for tickets")
	}
	return &Checker{key: key, now: now, used: map[string]time.Time{}}, nil
}

// Check returns an error unless the header has a valid ticket that was not used before. It marks
// the ticket as used.
func (c *Checker) Check(h *v1.SessionHeader) error {
	t := h.GetTicket()
	if t == nil || len(t.GetId()) != idBytes {
		return errors.New("the stream has no ticket of the gateway")
	}
	want, err := mac(c.key, h)
	if err != nil || !hmac.Equal(want, t.GetSignature()) {
		return errors.New("the ticket of the stream was not issued by the gateway")
	}
	now, expires := c.now(), t.GetExpiresAt().AsTime()
	switch {
	case now.After(expires.Add(clockSkew)):
		return errors.New("the ticket of the stream has expired; check the clocks of the node and the gateway")
	case expires.After(now.Add(Lifetime + clockSkew)):
		return errors.New("the ticket of the stream is not valid yet; check the clocks of the node and the gateway")
	}
	return c.use(string(t.GetId()), now, expires.Add(clockSkew))
}

// use marks a ticket as used. It returns an error if the ticket was used before.
func (c *Checker) use(id string, now, until time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.used[id]; ok {
		return errors.New("the ticket of the stream was used before")
	}
	if now.Sub(c.swept) >= Lifetime { // not for each ticket: a forwarded port uses one for each connection
		maps.DeleteFunc(c.used, func(_ string, until time.Time) bool { return now.After(until) })
		c.swept = now
	}
	c.used[id] = until
	return nil
}
