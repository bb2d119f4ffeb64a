package cluster

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// renewableTransport sends the requests of a client to the latest server with the latest credentials. Requests in
// flight keep the ones that they began with.
type renewableTransport struct {
	base   *url.URL // the base URL of incoming requests
	target atomic.Pointer[target]
}

// target is the destination of requests.
type target struct {
	base *url.URL
	next http.RoundTripper
}

func newRenewableTransport(config *rest.Config) (*renewableTransport, error) {
	t := &renewableTransport{}
	if err := t.renew(config); err != nil {
		return nil, err
	}
	t.base = t.target.Load().base
	return t, nil
}

// renew sets the destination of later requests.
func (t *renewableTransport) renew(config *rest.Config) error {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return fmt.Errorf("address of the cluster: %w", err)
	}
	next, err := rest.TransportFor(config)
	if err != nil {
		return err
	}
	if old := t.target.Swap(&target{base: base, next: next}); old != nil {
		utilnet.CloseIdleConnectionsFor(old.next)
	}
	return nil
}

// RoundTrip implements http.RoundTripper.
func (t *renewableTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	to := t.target.Load()
	if *to.base != *t.base {
		moved := *req.URL
		moved.Scheme, moved.Host = to.base.Scheme, to.base.Host
		moved.Path = strings.TrimSuffix(to.base.Path, "/") + "/" + strings.TrimPrefix(strings.TrimPrefix(req.URL.Path, t.base.Path), "/")
		moved.RawPath = ""
		req = req.Clone(req.Context())
		req.URL, req.Host = &moved, ""
	}
	return to.next.RoundTrip(req)
}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper.
func (t *renewableTransport) WrappedRoundTripper() http.RoundTripper { return t.target.Load().next }
