package sshdoor

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	// freeFailures is the number of failed logins of a client before it has to wait.
	freeFailures = 5
	// firstPause is the first wait. Each further failure doubles the wait, up to longestPause.
	firstPause, longestPause = time.Second, time.Minute
	// forgetAfter is how long after its last failure a client is forgotten.
	forgetAfter = 10 * time.Minute
	// maxClients bounds the number of remembered clients.
	maxClients = 4096
)

// client is a key that has proved its ownership from a network. Clients of one network, such as an office behind one address,
// do not delay each other.
type client struct{ network, fingerprint string }

func clientOf(from net.Addr, key ssh.PublicKey) client {
	return client{networkOf(from), ssh.FingerprintSHA256(key)}
}

// backoff delays logins of clients that failed to log in. It is safe for concurrent use.
type backoff struct {
	mu sync.Mutex
	by map[client]failures
}

// failures counts the failed logins of a client.
type failures struct {
	count int
	last  time.Time
}

// pause returns how long a client has to wait after its last failure.
func (f failures) pause() time.Duration {
	if f.count < freeFailures {
		return 0
	}
	return min(firstPause<<min(f.count-freeFailures, 10), longestPause)
}

// remaining returns how long a client still has to wait at a time, or 0.
func (b *backoff) remaining(c client, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.by[c]
	return max(f.pause()-now.Sub(f.last), 0)
}

// add records a failed login.
func (b *backoff) add(c client, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, known := b.by[c]
	if now.Sub(f.last) >= forgetAfter {
		f = failures{}
	}
	if !known && len(b.by) >= maxClients {
		b.makeRoom(now)
	}
	if b.by == nil {
		b.by = map[client]failures{}
	}
	b.by[c] = failures{count: f.count + 1, last: now}
}

// forget removes the failures of a client that has logged in.
func (b *backoff) forget(c client) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.by, c)
}

// makeRoom drops expired failures, or else the client with the oldest failure.
func (b *backoff) makeRoom(now time.Time) {
	var oldest client
	at := now
	for c, f := range b.by {
		if now.Sub(f.last) >= forgetAfter {
			delete(b.by, c)
		} else if !f.last.After(at) {
			oldest, at = c, f.last
		}
	}
	if len(b.by) >= maxClients {
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
