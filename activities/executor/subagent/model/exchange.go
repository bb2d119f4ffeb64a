package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Bounds of a response.
const (
	// maxReplyBytes bounds a whole stream. OpenAI sends about 300 bytes per token, and replies of 128,000 tokens exist.
	maxReplyBytes = 64 << 20
	// maxLineBytes bounds a line of a stream, which the official clients keep in memory.
	maxLineBytes = 4 << 20
	// maxFailureBytes bounds the body of a refusal.
	maxFailureBytes = 64 << 10
	// maxRestBytes and restTimeout bound how much is read after the end of a reply, so that the connection can be
	// reused. Providers end the response at once, but some proxies do not.
	maxRestBytes = 4 << 10
	restTimeout  = 10 * time.Millisecond
)

// errStalled is the cause of a request that ended because the provider was silent.
var errStalled = errors.New("the provider sends nothing")

// errEndless reports that a reply exceeds a bound.
type errEndless struct{ bound string }

func (e errEndless) Error() string {
	return "the provider does not end its reply: more than " + e.bound
}

// statusError is a refusal by the provider, by HTTP status or within a stream.
type statusError struct {
	status int
	header http.Header // nil within a stream
	body   []byte
}

func (e *statusError) Error() string { return fmt.Sprintf("status %d", e.status) }

// exchange is the transport of one request. It bounds the response, cancels a request whose provider is silent, and
// turns refusals into a *statusError. It follows no redirects, because a redirect would send the key to another server.
type exchange struct {
	base    http.RoundTripper
	stall   time.Duration
	silence *time.Timer
	cancel  context.CancelCauseFunc

	isSent      bool
	sendError   error // the request got no response
	readError   error // the response broke
	contentType string
}

// newExchange returns the transport of one request. cancel cancels the request.
func newExchange(base http.RoundTripper, stall time.Duration, cancel context.CancelCauseFunc) *exchange {
	if base == nil {
		base = http.DefaultTransport
	}
	e := &exchange{base: base, stall: stall, cancel: cancel, silence: time.AfterFunc(stall, func() { cancel(errStalled) })}
	e.silence.Stop() // runs only while the exchange waits for the provider
	return e
}

// stop releases the timer.
func (e *exchange) stop() { e.silence.Stop() }

// RoundTrip sends the request.
func (e *exchange) RoundTrip(request *http.Request) (*http.Response, error) {
	e.isSent = true
	e.silence.Reset(e.stall)
	response, err := e.base.RoundTrip(request)
	e.silence.Stop()
	if err != nil {
		e.sendError = err
		return nil, err
	}
	body := &boundedBody{exchange: e, rest: response.Body}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		defer response.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(body, maxFailureBytes)) // half an explanation is better than none
		return nil, &statusError{response.StatusCode, response.Header, text}
	}
	e.contentType = response.Header.Get("Content-Type")
	response.Body = body
	return response, nil
}

// boundedBody is the body of a response, limited by the bounds of its exchange.
type boundedBody struct {
	exchange *exchange
	rest     io.ReadCloser
	bytes    int
	line     int  // bytes since the last line break
	isOver   bool // nothing of use follows
}

// Read reads the body. It fails if the provider is silent for too long, or if the reply or a line of it is too large.
func (b *boundedBody) Read(p []byte) (int, error) {
	b.exchange.silence.Reset(b.exchange.stall)
	n, err := b.rest.Read(p)
	b.exchange.silence.Stop()
	b.bytes += n
	b.line += n
	if i := bytes.LastIndexByte(p[:n], '\n'); i >= 0 {
		b.line = n - i - 1
	}
	switch {
	case err != nil && err != io.EOF:
		b.exchange.readError = err
	case b.bytes > maxReplyBytes:
		err = errEndless{fmt.Sprintf("%d MiB", maxReplyBytes>>20)}
	case b.line > maxLineBytes:
		err = errEndless{fmt.Sprintf("%d MiB in one event", maxLineBytes>>20)}
	}
	b.isOver = b.isOver || err != nil
	return n, err
}

// Close ends the response. If the response is about to end, Close reads its rest first.
func (b *boundedBody) Close() error {
	if !b.isOver {
		timer := time.AfterFunc(restTimeout, func() { b.exchange.cancel(nil) })
		_, _ = io.CopyN(io.Discard, b.rest, maxRestBytes) // after an error, the connection is not reused
		timer.Stop()
	}
	return b.rest.Close()
}
