package drill

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
)

// dealer is a load balancer in front of the gateways of a cluster: it deals the calls to them in turn, and to another one if one
// refuses the connection. It is safe for concurrent use.
type dealer struct {
	cluster *Cluster
	server  *http.Server
	address string
	next    atomic.Int64

	mu sync.Mutex
	// served counts the calls that programs of each path have served.
	served map[string]int
}

// startDealer starts a dealer on a free port. The caller must close it.
func (y *Cluster) startDealer() (*dealer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &dealer{cluster: y, address: listener.Addr().String(), served: map[string]int{}}
	streams := &http.Transport{Protocols: new(http.Protocols)}
	streams.Protocols.SetUnencryptedHTTP2(true)
	d.server = &http.Server{
		Protocols: new(http.Protocols),
		Handler: &httputil.ReverseProxy{
			FlushInterval: -1, // streams
			ErrorLog:      log.New(io.Discard, "", 0),
			Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "dealt"}) },
			Transport:     dealt{d, streams, &http.Transport{}},
		},
	}
	d.server.Protocols.SetHTTP1(true)
	d.server.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = d.server.Serve(listener) }()
	return d, nil
}

func (d *dealer) close() error { return d.server.Close() }

// dealt sends the requests to the gateways in turn.
type dealt struct {
	*dealer
	streams, upgrades http.RoundTripper // HTTP/2 has no Upgrade, with which a worker connects for sessions
}

// RoundTrip implements http.RoundTripper.
func (d dealt) RoundTrip(r *http.Request) (*http.Response, error) {
	first, to := int(d.next.Add(1)), d.streams
	if r.Header.Get("Upgrade") != "" {
		to = d.upgrades
	}
	for i := 0; ; i++ {
		turn := (first + i) % len(d.cluster.gateways)
		sent := r.Clone(r.Context())
		sent.URL.Host = strings.TrimPrefix(d.cluster.gateways[turn], "http://")
		if r.Body != nil {
			sent.Body = io.NopCloser(r.Body) // a try that fails must not close it
		}
		res, err := to.RoundTrip(sent)
		if refused, ok := errors.AsType[*net.OpError](err); ok && refused.Op == "dial" && i < len(d.cluster.gateways)-1 {
			continue // nothing was sent
		}
		if err == nil {
			d.count(d.cluster.program(gatewayName(turn)))
		}
		return res, err
	}
}

func (d *dealer) count(program string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.served[program]++
}

// servedBy returns how many calls a program has served.
func (d *dealer) servedBy(program string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.served[program]
}
