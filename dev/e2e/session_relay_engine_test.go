//go:build engines

package e2e

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	nodelink "switchyard/activities/sessions/link"
	"switchyard/activities/sessions/wire"
	v1 "switchyard/proto/switchyard/v1"
)

// sessionRelay stands between a node and a gateway. It sees the streams of the node's link, can change their headers,
// and can cut the link.
type sessionRelay struct {
	*httptest.Server
	t   *testing.T
	tls *tls.Config // to reach the gateway

	mu      sync.Mutex
	gateway string // address of the gateway
	change  func(key []byte, h *v1.SessionHeader) *v1.SessionHeader
	last    *v1.SessionHeader // of the last stream, as the gateway sent it
	links   []*wire.Session
	streams sync.WaitGroup
}

func startSessionRelay(t *testing.T, gateway string, toGateway *tls.Config) *sessionRelay {
	t.Helper()
	r := &sessionRelay{t: t, tls: toGateway, gateway: gateway}
	calls := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			to, err := url.Parse(r.target())
			if err != nil {
				t.Error(err)
				return
			}
			p.SetURL(to)
		},
		Transport: &http.Transport{TLSClientConfig: toGateway, ForceAttemptHTTP2: true}, FlushInterval: -1,
	}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == nodelink.Path {
			r.relay(w, req)
			return
		}
		calls.ServeHTTP(w, req)
	}))
	r.Config.Protocols = new(http.Protocols)
	r.Config.Protocols.SetHTTP1(true)
	r.Config.Protocols.SetUnencryptedHTTP2(true)
	r.Start()
	t.Cleanup(func() {
		r.cut()
		r.CloseClientConnections()
		r.Close()
		r.streams.Wait()
	})
	return r
}

func (r *sessionRelay) target() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gateway
}

// moveTo directs the node's later traffic to another gateway.
func (r *sessionRelay) moveTo(gateway string) {
	r.mu.Lock()
	r.gateway = gateway
	r.mu.Unlock()
	r.cut()
}

// cut closes the link of the node abruptly.
func (r *sessionRelay) cut() {
	r.mu.Lock()
	links := r.links
	r.links = nil
	r.mu.Unlock()
	for _, l := range links {
		_ = l.Close()
	}
}

// onHeader sets a function that changes the headers of streams to the node. nil changes none.
func (r *sessionRelay) onHeader(change func(key []byte, h *v1.SessionHeader) *v1.SessionHeader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.change = change
}

// lastHeader returns the header of the last stream.
func (r *sessionRelay) lastHeader() *v1.SessionHeader {
	r.mu.Lock()
	defer r.mu.Unlock()
	return proto.CloneOf(r.last)
}

// relay carries one link until either end closes it.
func (r *sessionRelay) relay(w http.ResponseWriter, req *http.Request) {
	header := http.Header{}
	for _, name := range []string{nodelink.NodeHeader, nodelink.IncarnationHeader, "Authorization"} {
		header[name] = req.Header[name]
	}
	up, err := wire.Dial(req.Context(), wire.DialOptions{URL: r.target(), Path: nodelink.Path, TLS: r.tls, Header: header})
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer up.Close()
	hello := &v1.LinkHello{}
	if err := wire.ReadMessage(up, hello); err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	down, err := wire.Accept(w, req)
	if err != nil {
		return
	}
	defer down.Close()
	if err := wire.WriteMessage(down, hello); err != nil {
		return
	}
	gateway, node := wire.NewSession(up, true), wire.NewSession(down, false)
	defer gateway.Close()
	defer node.Close()
	r.mu.Lock()
	r.links = append(r.links, gateway, node)
	r.mu.Unlock()
	go func() {
		<-node.Done()
		_ = gateway.Close()
	}()
	for {
		conn, err := gateway.Accept()
		if err != nil {
			return
		}
		r.streams.Go(func() { r.pass(conn, node, hello.GetTicketKey()) })
	}
}

// pass forwards one stream to the node.
func (r *sessionRelay) pass(conn wire.Conn, node *wire.Session, key []byte) {
	defer conn.Close()
	h, err := wire.ReadHeader(conn)
	if err != nil {
		return
	}
	r.mu.Lock()
	change := r.change
	r.last = proto.CloneOf(h)
	r.mu.Unlock()
	if change != nil {
		h = change(key, h)
	}
	far, err := node.Open(context.Background())
	if err != nil {
		return
	}
	defer far.Close()
	if err := wire.WriteMessage(far, h); err != nil {
		return
	}
	wire.Join(conn, far)
}
