package client

import (
	"net/http"
	"net/url"
)

// bearerTransport adds a token to requests for the gateway that it is for, and to no other: a redirect to another host gets
// none.
type bearerTransport struct {
	*http.Transport
	gateway *url.URL
	token   string // "" for none
}

// RoundTrip sends a request.
func (t bearerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.token != "" && r.URL.Host == t.gateway.Host && r.URL.Scheme == t.gateway.Scheme {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+t.token)
	}
	return t.Transport.RoundTrip(r)
}
