package mcptool

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// headerTransport sends the headers of the task to its server but to no other host, such as the target of a redirect.
// It also bounds responses.
type headerTransport struct {
	next    http.RoundTripper
	server  *url.URL
	headers map[string]string
}

func newHeaderTransport(next http.RoundTripper, address string, headers map[string]string) *headerTransport {
	server, err := url.Parse(address)
	if err != nil {
		panic(err) // checkServer has parsed it
	}
	return &headerTransport{next, server, headers}
}

// RoundTrip sends a request.
func (t *headerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == t.server.Scheme && r.URL.Host == t.server.Host {
		r = r.Clone(r.Context())
		for name, value := range t.headers {
			r.Header.Set(name, value)
		}
	}
	answer, err := t.next.RoundTrip(r)
	if err == nil && answer.Header.Get("Content-Type") != "text/event-stream" {
		answer.Body = &boundedBody{ReadCloser: answer.Body, left: maxMessage}
	}
	return answer, err
}

// boundedBody fails after left bytes.
type boundedBody struct {
	io.ReadCloser
	left int
}

// Read reads from the body. Past the bound it returns an error.
func (b *boundedBody) Read(data []byte) (int, error) {
	if b.left == 0 {
		return 0, fmt.Errorf("the answer has more than %d bytes", maxMessage)
	}
	n, err := b.ReadCloser.Read(data[:min(len(data), b.left)])
	b.left -= n
	return n, err
}
