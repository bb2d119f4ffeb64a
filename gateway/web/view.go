package web

import (
	"context"
	"errors"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"switchyard/gateway/rpcerror"
	"switchyard/gateway/web/live"
	"switchyard/gateway/web/login"
)

// view is a kind of page.
type view struct {
	pattern    string   // pattern of http.ServeMux
	parameters []string // allowed query parameters
	isPersonal bool     // depends on the name of the caller, and not on its rights alone
	// open opens the source of the view's data. The source makes its calls in the name of the caller.
	open func(w *Web, req request) viewSource
	// fill completes the HTML of a new page with content that updates do not carry. Optional.
	fill func(ctx context.Context, w *Web, req request, html string) string
	// follow sends the lines of a log since a version as JSON. It replaces open for views without a page of their own.
	follow func(ctx context.Context, w *Web, req request, version string, send func(update []byte) error) error
}

// viewData is the data of a view at a time.
type viewData struct {
	title    string
	template string
	data     any
}

// shaped is implemented by data that determine the shape of the content, see live.Content.
type shaped interface{ shape() string }

// viewSource produces the data of a view. It is used by a single goroutine.
type viewSource interface {
	// next returns the data: immediately on the first call, then whenever they may have changed. An error ends the view.
	next(ctx context.Context) (viewData, error)
	close()
}

// opener returns the function that opens the contents of a view for a caller.
func (w *Web) opener(v view, req request) live.Opener {
	return func(ctx context.Context) (live.Source, error) {
		return &renderedSource{w, v.open(w, req), req}, nil
	}
}

// renderedSource renders the data of a view to contents.
type renderedSource struct {
	w      *Web
	source viewSource
	req    request
}

// Next renders the next data of the source.
func (s *renderedSource) Next(ctx context.Context) (*live.Content, error) {
	data, err := s.source.next(s.req.callerContext(ctx))
	if data.template == "" {
		return nil, err
	}
	content, renderErr := s.w.pages.render(data, s.req)
	return content, errors.Join(err, renderErr)
}

// Close closes the underlying source.
func (s *renderedSource) Close() { s.source.close() }

const (
	// pollInterval is the minimum interval between two reads of a polled view.
	pollInterval = 500 * time.Millisecond
	// shareOfCore bounds the cost of polling: a pause lasts shareOfCore times as long as the read, up to longestPause.
	// Slower reads, which are typical of a busy machine, are followed by a pause of busyShare times their duration, because
	// people wait for changes there, too.
	shareOfCore, busyShare = 15, 4
	longestPause           = 800 * time.Millisecond
	// retryInterval is the pause after a failed read.
	retryInterval = time.Second
)

// polledSource loads its data repeatedly.
type polledSource struct {
	load   func(ctx context.Context) (viewData, error)
	pause  time.Duration // before the next read
	loaded bool
}

// newPolledSource returns a source that calls load repeatedly.
func newPolledSource(load func(ctx context.Context) (viewData, error)) viewSource {
	return &polledSource{load: load}
}

func (s *polledSource) next(ctx context.Context) (viewData, error) {
	for {
		if err := sleep(ctx, s.pause); err != nil {
			return viewData{}, err
		}
		began := time.Now()
		data, err := s.load(ctx)
		switch {
		case err == nil:
			s.loaded, s.pause = true, pauseAfter(time.Since(began), pollInterval)
			return data, nil
		case !s.loaded || !isTransient(err):
			return viewData{}, err
		}
		s.pause = retryInterval
	}
}

func (s *polledSource) close() {}

// pauseAfter returns the pause after a read that took d, but no less than least.
func pauseAfter(d, least time.Duration) time.Duration {
	return max(least, min(shareOfCore*d, max(longestPause, busyShare*d)))
}

// isTransient reports whether a failed read may succeed later.
func isTransient(err error) bool {
	switch rpcerror.CodeOf(err) {
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded, connect.CodeResourceExhausted, connect.CodeAborted, connect.CodeInternal, connect.CodeUnknown:
		return true
	}
	return false
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// serveView returns a handler for the pages of a view.
func (w *Web) serveView(v view) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		req, err := v.requestOf(r)
		if err != nil {
			w.writeError(rw, r, err)
			return
		}
		if login.HasNotice(r) { // the page must show the effect of the action
			w.Feeds.Renew(req.key())
		}
		content, version, err := w.Feeds.Load(r.Context(), req.key(), w.opener(v, req))
		if err != nil {
			w.writeError(rw, r, err)
			return
		}
		html := content.HTML
		if v.fill != nil {
			html = v.fill(r.Context(), w, req, html)
		}
		w.writePage(rw, r, http.StatusOK, frame{Title: content.Title, View: req.url(), Version: version, Shape: content.Shape, Content: html})
	})
}
