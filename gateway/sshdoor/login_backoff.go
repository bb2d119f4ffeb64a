package sshdoor

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// freeFailures is the number of failed logins from a network before it has to wait.
	freeFailures = 5
	// firstPause is the first wait. Each further failure doubles the wait, up to longestPause.
	firstPause, longestPause = time.Second, time.Minute
	// forgetAfter is how long after its last failure a network is forgotten.
	forgetAfter = 10 * time.Minute
	// maxNetworks bounds the number of remembered networks.
	maxNetworks = 4096
)

// backoff delays logins from networks with failed logins. It is safe for concurrent use.
type backoff struct {
	mu sync.Mutex
	by map[string]failures
}

// failures counts the failed logins of a network.
type failures struct {
	count int
	last  time.Time
}

// pause returns how long a network has to wait after its last failure.
func (f failures) pause() time.Duration {
	if f.count < freeFailures {
		return 0
	}
	return min(firstPause<<min(f.count-freeFailures, 10), longestPause)
}

// isAllowed reports whether a connection from a network may try to log in at a time.
func (b *backoff) isAllowed(network string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, ok := b.by[network]
	return !ok || now.Sub(f.last) >= f.pause()
}

// add records a failed login from a network.
func (b *backoff) add(network string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, known := b.by[network]
	if now.Sub(f.last) >= forgetAfter {
		f = failures{}
	}
	if !known && len(b.by) >= maxNetworks {
		b.forget(now)
	}
	if b.by == nil {
		b.by = map[string]failures{}
	}
	b.by[network] = failures{count: f.count + 1, last: now}
}

// forget makes room: it drops expired failures, or else the network with the oldest failure.
func (b *backoff) forget(now time.Time) {
	oldest, at := "", now
	for network, f := range b.by {
		if now.Sub(f.last) >= forgetAfter {
			delete(b.by, network)
		} else if !f.last.After(at) {
			oldest, at = network, f.last
		}
	}
	if len(b.by) >= maxNetworks {
		delete(b.by, oldest)
	}
}

// networkOf returns the address of a client without its port, or the /64 network of an IPv6 address, because a single host
// may own the whole /64.
func networkOf(address net.Addr) string {
	at, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return address.String()
	}
	ip := at.Addr().Unmap()
	if ip.Is4() {
		return ip.String()
	}
	network, _ := ip.WithZone("").Prefix(64) // an IPv6 address always has one
	return network.String()
}
