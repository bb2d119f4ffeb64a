package edge

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/semaphore"
)

// Limits bound the resources that clients can make a gateway hold. A client is an address, so all clients behind one proxy
// count as one.
type Limits struct {
	// BodyBytes bounds the total size of the bodies of all open calls. A compressed body counts with the maximum size that
	// it may unpack to. Default: 128 MiB.
	BodyBytes int64
	// BodyTime is how long a body may take to arrive, plus a second for each 64 KiB of it. Default: 20 s.
	BodyTime time.Duration
	// Calls and ClientCalls bound the open calls of all clients and of one client. Defaults: 4096 and 1024.
	Calls, ClientCalls int
	// Streams and ClientStreams bound the open streams among them. Defaults: 1024 and 256.
	Streams, ClientStreams int
}

// bodyRate is the minimum rate, in bytes per second, at which a body must arrive once BodyTime is over.
const bodyRate = 64 << 10

// WithDefaults returns a copy of l with default values for zero fields.
func (l Limits) WithDefaults() Limits {
	if l.BodyBytes == 0 {
		l.BodyBytes = 128 << 20
	}
	if l.BodyTime == 0 {
		l.BodyTime = 20 * time.Second
	}
	for _, bound := range []struct {
		field *int
		value int
	}{{&l.Calls, 4096}, {&l.ClientCalls, 1024}, {&l.Streams, 1024}, {&l.ClientStreams, 256}} {
		if *bound.field == 0 {
			*bound.field = bound.value
		}
	}
	return l
}

// Validate returns an error if a limit is negative.
func (l Limits) Validate() error {
	if l.BodyBytes < 0 || l.BodyTime < 0 || l.Calls < 0 || l.ClientCalls < 0 || l.Streams < 0 || l.ClientStreams < 0 {
		return errors.New("gateway: Limits has a negative field")
	}
	return nil
}

// Bounds tracks the usage of a gateway's limits. It is safe for concurrent use.
type Bounds struct {
	limits Limits
	// compressedBytes is the size with which a compressed body counts.
	compressedBytes int64
	bytes           *semaphore.Weighted
	calls           *openCount
	streams         *openCount
}

// NewBounds returns unused bounds. A compressed body counts as compressedBytes, the maximum size of a message that it may
// unpack to.
func NewBounds(l Limits, compressedBytes int64) *Bounds {
	return &Bounds{
		limits:          l,
		compressedBytes: compressedBytes,
		bytes:           semaphore.NewWeighted(l.BodyBytes),
		calls:           &openCount{what: "calls", all: l.Calls, each: l.ClientCalls},
		streams:         &openCount{what: "streams", all: l.Streams, each: l.ClientStreams},
	}
}

// Protect returns a handler that refuses calls beyond the limits, and bounds the bodies of the others.
func (b *Bounds) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leave, err := b.calls.enter(clientOf(r.RemoteAddr))
		if err == nil {
			defer leave()
			if r.Body != nil && r.Body != http.NoBody {
				body := newBoundedBody(b, w, r)
				defer body.release()
				r.Body = body
			}
			next.ServeHTTP(w, r)
			return
		}
		WriteError(w, r, err)
	})
}

// openCount counts open calls or streams, per client and in total. It is safe for concurrent use.
type openCount struct {
	what      string
	all, each int

	mu       sync.Mutex
	open     int
	byClient map[string]int
}

// count returns the total number of open calls or streams.
func (c *openCount) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// enter counts one more call or stream of a client until leave is called.
func (c *openCount) enter(client string) (leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.byClient[client] >= c.each:
		return nil, connect.NewError(connect.CodeResourceExhausted,
			fmt.Errorf("client %s is at its limit of %d open %s; close some of them", client, c.each, c.what))
	case c.open >= c.all:
		return nil, connect.NewError(connect.CodeResourceExhausted,
			fmt.Errorf("the gateway is at its limit of %d open %s; try again later, or use another gateway of this deployment", c.all, c.what))
	}
	if c.byClient == nil {
		c.byClient = map[string]int{}
	}
	c.open++
	c.byClient[client]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.open--
		if c.byClient[client]--; c.byClient[client] == 0 {
			delete(c.byClient, client)
		}
	}, nil
}

// EnterStream counts one more stream of the client at an address until leave is called.
func (b *Bounds) EnterStream(address string) (leave func(), err error) {
	return b.streams.enter(clientOf(address))
}

// OpenCalls returns the number of open calls.
func (b *Bounds) OpenCalls() int { return b.calls.count() }

// OpenStreams returns the number of open streams.
func (b *Bounds) OpenStreams() int { return b.streams.count() }

// IsFree reports whether no bodies are held.
func (b *Bounds) IsFree() bool {
	free := b.bytes.TryAcquire(b.limits.BodyBytes)
	if free {
		b.bytes.Release(b.limits.BodyBytes)
	}
	return free
}

// clientOf returns the client at an address of the form host:port.
func clientOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
