package inprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// URL is the base URL for clients that call through a Client. Its host is never resolved.
const URL = "http://in-process.invalid"

// Client passes requests to Handler and returns responses while they are being written, streams included. It is a
// connect.HTTPClient and safe for concurrent use.
//
// Values of the request context reach the handler, so the handler sees the principal that was authenticated before the call.
// The handler's context is cancelled once the response body is closed.
type Client struct{ Handler http.Handler }

// Do runs the handler in a goroutine and returns the response as soon as the handler has written the header. The caller must
// close the body. The goroutine ends with the handler.
func (c Client) Do(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	request := r.Clone(ctx)
	request.RequestURI = r.URL.RequestURI()
	request.Host = r.URL.Host
	request.RemoteAddr = remoteAddress(ctx)
	if request.Body == nil {
		request.Body = http.NoBody
	}
	reader, pipe := io.Pipe()
	w := &writer{header: http.Header{}, body: pipe, written: make(chan struct{})}
	go func() {
		defer func() {
			err := panicError(recover())
			w.finish(err)
			_ = pipe.CloseWithError(err)
		}()
		c.Handler.ServeHTTP(w, request)
	}()
	select {
	case <-w.written:
	case <-ctx.Done():
		cancel()
		_ = reader.CloseWithError(ctx.Err())
		return nil, ctx.Err()
	}
	if w.err != nil {
		cancel()
		return nil, w.err
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: body{reader, cancel}, ContentLength: -1, Request: r,
	}, nil
}

// panicError converts the recovered panic of a handler to an error, or returns nil if the handler did not panic.
func panicError(cause any) error {
	switch {
	case cause == nil:
		return nil
	case cause == http.ErrAbortHandler:
		return io.ErrUnexpectedEOF
	}
	return fmt.Errorf("the handler panicked: %v", cause)
}

// addressKey is the context key of a client address.
type addressKey struct{}

// WithRemoteAddress returns a context whose calls are attributed to the client at address, a host:port.
func WithRemoteAddress(ctx context.Context, address string) context.Context {
	return context.WithValue(ctx, addressKey{}, address)
}

func remoteAddress(ctx context.Context) string {
	address, _ := ctx.Value(addressKey{}).(string)
	return address
}

// body is the body of a response. Closing it cancels the request.
type body struct {
	*io.PipeReader
	cancel context.CancelFunc
}

// Close cancels the request. The next write of the handler fails.
func (b body) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

// writer is the http.ResponseWriter of the handler. Only the handler's goroutine uses it, except that others may read
// status, sent and err once written is closed.
type writer struct {
	header  http.Header
	body    *io.PipeWriter
	written chan struct{}
	once    sync.Once
	status  int
	sent    http.Header
	err     error
}

var (
	_ http.ResponseWriter = (*writer)(nil)
	_ http.Flusher        = (*writer)(nil)
)

// Header returns the header that WriteHeader will send.
func (w *writer) Header() http.Header { return w.header }

// WriteHeader sends the header. Further calls are no-ops.
func (w *writer) WriteHeader(status int) {
	if status < http.StatusOK { // 1xx is only interim
		return
	}
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.written)
	})
}

// Write sends a part of the body and blocks until it is read.
func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// Flush sends the header; body data is never buffered.
func (w *writer) Flush() { w.WriteHeader(http.StatusOK) }

// finish sends the header if the handler returned without sending it, or records err if there is no response.
func (w *writer) finish(err error) {
	if err == nil {
		w.WriteHeader(http.StatusOK)
		return
	}
	w.once.Do(func() {
		w.err = errors.Join(errors.New("no answer"), err)
		close(w.written)
	})
}
