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

// Client hands requests to Handler and returns its answers while they are written, streams included. It is a
// connect.HTTPClient, and safe for concurrent use.
//
// Values of a request's context reach the handler, so that whoever passed a lock before the call is its caller. The context
// ends for the handler once the body of the answer is closed.
type Client struct{ Handler http.Handler }

// Do starts the handler and returns its answer as soon as the handler has written the header. The caller must close the
// body. The handler runs in a goroutine that ends with the handler.
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
			err := failure(recover())
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

// failure returns the error of an answer whose handler has panicked with cause, or nil if it has not.
func failure(cause any) error {
	switch {
	case cause == nil:
		return nil
	case cause == http.ErrAbortHandler:
		return io.ErrUnexpectedEOF
	}
	return fmt.Errorf("the handler panicked: %v", cause)
}

// addressKey is the key in a context of the address of a client.
type addressKey struct{}

// WithRemoteAddress returns a context whose calls count as those of the client at an address, host:port.
func WithRemoteAddress(ctx context.Context, address string) context.Context {
	return context.WithValue(ctx, addressKey{}, address)
}

func remoteAddress(ctx context.Context) string {
	address, _ := ctx.Value(addressKey{}).(string)
	return address
}

// body is the body of an answer.
type body struct {
	*io.PipeReader
	cancel context.CancelFunc
}

// Close ends the request. The handler's next write fails.
func (b body) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

// writer is where a handler writes its answer. One goroutine uses it, but for written, status, sent and err, which others
// may read once written is closed.
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

// Header returns the header that WriteHeader sends.
func (w *writer) Header() http.Header { return w.header }

// WriteHeader sends the header. Further calls do nothing.
func (w *writer) WriteHeader(status int) {
	if status < http.StatusOK { // 1xx announces another answer
		return
	}
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.written)
	})
}

// Write sends a part of the body, and waits until it is read.
func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// Flush sends the header; a body is never held back.
func (w *writer) Flush() { w.WriteHeader(http.StatusOK) }

// finish sends what a handler that has returned has not sent, or err if there is no answer.
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
