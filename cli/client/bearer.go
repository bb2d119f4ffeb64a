package client

import (
	"net/http"
	"net/url"
)

// bearerTransport adds a token to requests for its own gateway only: a redirect to another host carries no token.
type bearerTransport struct {
	*http.Transport
	gateway *url.URL
	token   string // "" for no token
}

// RoundTrip sends a request, with the token if it is for the gateway.
func (t bearerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.token != "" && r.URL.Host == t.gateway.Host && r.URL.Scheme == t.gateway.Scheme {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+t.token)
	}
	return t.Transport.RoundTrip(r)
}
