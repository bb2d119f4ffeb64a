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
	pattern    string   // of http.ServeMux
	parameters []string // of its query
	// open opens the source of the view's data. Calls of the source are the caller's.
	open func(w *Web, req request) viewSource
	// fill completes the HTML of a page that is opened with what updates do not bring; nil: nothing is missing.
	fill func(ctx context.Context, w *Web, req request, html string) string
	// follow sends the lines of a log since a version, as JSON, in place of a source: it has no page of its own.
	follow func(ctx context.Context, w *Web, req request, version string, send func(update []byte) error) error
}

// viewData is what a view shows at a time.
type viewData struct {
	title    string
	template string
	data     any
}

// shaped are data of which the view has a shape, as live.Content says.
type shaped interface{ shape() string }

// viewSource makes the data of a view. One goroutine uses it.
type viewSource interface {
	// next returns the data: at once when it is called first, and then once they may have changed. An error ends the view.
	next(ctx context.Context) (viewData, error)
	close()
}

// opener returns what opens the contents of a view for a caller.
func (w *Web) opener(v view, req request) live.Opener {
	return func(ctx context.Context) (live.Source, error) {
		return &renderedSource{w, v.open(w, req), req}, nil
	}
}

// renderedSource renders the data of a view.
type renderedSource struct {
	w      *Web
	source viewSource
	req    request
}

// Next returns the next content.
func (s *renderedSource) Next(ctx context.Context) (*live.Content, error) {
	data, err := s.source.next(s.req.as(ctx))
	if data.template == "" {
		return nil, err
	}
	content, renderErr := s.w.pages.render(data, s.req)
	return content, errors.Join(err, renderErr)
}

// Close closes the source.
func (s *renderedSource) Close() { s.source.close() }

const (
	// pollInterval is the shortest pause between two looks of a view that no stream keeps current.
	pollInterval = 500 * time.Millisecond
	// shareOfCore bounds what the looks of a view cost: pauses last so many times as long, up to longestPause. Beyond it they
	// last busyShare times as long, because looks are slow on a busy machine, on which people wait for changes, too.
	shareOfCore, busyShare = 15, 4
	longestPause           = 800 * time.Millisecond
	// retryInterval is the pause after a look that has failed.
	retryInterval = time.Second
)

// polledSource looks again and again.
type polledSource struct {
	load   func(ctx context.Context) (viewData, error)
	pause  time.Duration // before the next look
	loaded bool
}

// polled returns a source that loads the data again and again.
func polled(load func(ctx context.Context) (viewData, error)) viewSource {
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

// pauseAfter returns the pause after a look that took d, at least so long.
func pauseAfter(d, least time.Duration) time.Duration {
	return max(least, min(shareOfCore*d, max(longestPause, busyShare*d)))
}

// isTransient reports whether a look that has failed may succeed later.
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

// serveView returns a handler of the pages of a view.
func (w *Web) serveView(v view) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		req, err := v.requestOf(r)
		if err != nil {
			w.writeError(rw, r, err)
			return
		}
		if login.HasNotice(r) { // the page shows what the action has changed
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
