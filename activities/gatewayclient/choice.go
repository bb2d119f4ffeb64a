package gatewayclient

import (
	"fmt"
	"sync"
)

// choice decides which gateway of a list is used. It does no I/O, and is safe for concurrent use. Gateways are numbered from 0.
type choice struct {
	urls []string
	// identifies is set if a gateway must be identified before it is used.
	identifies bool

	mu sync.Mutex
	// current is the gateway that is tried first.
	current int
	// answering is the gateway that answered last, or -1. changed is closed when another one takes its place.
	answering int
	changed   chan struct{}
	// identified marks the gateways that have answered with the wanted identity and have not failed since.
	identified []bool
	// wanted is the identity of the store that a gateway must have, or "" before it is known. wantedBy names the source.
	wanted, wantedBy string
}

func newChoice(l List, identifies bool) *choice {
	return &choice{urls: l.URLs(), identifies: identifies, answering: -1, changed: make(chan struct{}), identified: make([]bool, len(l))}
}

// order returns all gateways in the order in which they are tried.
func (c *choice) order() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	order := make([]int, len(c.urls))
	for i := range order {
		order[i] = (c.current + i) % len(order)
	}
	return order
}

// inUse returns the gateway that answered last, or the one that is tried first if none has answered. changed is closed
// when another gateway answers instead.
func (c *choice) inUse() (i int, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answering < 0 {
		return c.current, c.changed
	}
	return c.answering, c.changed
}

// hasAnswered records that a gateway has answered.
func (c *choice) hasAnswered(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != i || c.answering == i {
		return // another request has moved on meanwhile
	}
	if c.answering >= 0 {
		close(c.changed)
		c.changed = make(chan struct{})
	}
	c.answering = i
}

// hasFailed records that a gateway cannot be used. If it is the current one, the next one takes its place, however many
// requests report the failure.
func (c *choice) hasFailed(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.identified[i] = false
	if c.current == i {
		c.current = (i + 1) % len(c.urls)
	}
}

// moveTo makes a gateway the current one.
func (c *choice) moveTo(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current = i
}

// needsIdentity reports whether a gateway must be identified before it is used. A single gateway may be used until an
// identity is wanted.
func (c *choice) needsIdentity(i int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.identifies && !c.identified[i] && (c.wanted != "" || len(c.urls) > 1)
}

// identify records the identity of a gateway's store. The first identity is wanted of all others. It returns an error if the
// gateway has another one.
func (c *choice) identify(i int, identity string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wanted == "" {
		c.wanted, c.wantedBy = identity, c.urls[i]
	}
	if identity != c.wanted {
		c.identified[i] = false
		return fmt.Errorf("it has the store %s, but %s has the store %s; name only gateways of one fleet with --gateway", identity, c.wantedBy, c.wanted)
	}
	c.identified[i] = true
	return nil
}

// expect replaces the identity that is wanted of all gateways.
func (c *choice) expect(identity, by string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wanted != identity {
		clear(c.identified)
	}
	c.wanted, c.wantedBy = identity, by
}
