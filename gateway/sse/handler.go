package sse

import (
	"context"
	"errors"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/gateway/auth"
	"switchyard/gateway/edge"
	"switchyard/gateway/eventstream"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runevents"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// DefaultKeepAlive is the idle time after which a stream sends a comment.
	DefaultKeepAlive = 15 * time.Second
	// DefaultWriteTimeout is how long a write to a client may block.
	DefaultWriteTimeout = 30 * time.Second

	contentType     = "text/event-stream"
	followParameter = "follow"
)

// errStopping ends the streams of a gateway that shuts down.
var errStopping = connect.NewError(connect.CodeUnavailable, errors.New("the gateway is shutting down"))

// LogSource sends the logs that a request selects. It calls accept after validating the request and before sending
// anything.
type LogSource func(ctx context.Context, req *v1.StreamRunLogsRequest, accept func() error, send func(*v1.StreamRunLogsResponse) error) error

// Config holds the dependencies and settings of a Handler.
type Config struct {
	Index   *runindex.Index
	Reader  *runview.Reader
	Pollers *runview.Pollers
	Events  *runevents.Reader
	Logs    LogSource
	Bounds  *edge.Bounds
	Log     *slog.Logger
	// RoundInterval is the shortest time between two rounds of the feed of all runs. Default: 1 s.
	RoundInterval time.Duration
	// Stopping is closed when the gateway shuts down and streams must end.
	Stopping <-chan struct{}
	// KeepAlive is the idle time after which a stream sends a comment. Default: DefaultKeepAlive.
	KeepAlive time.Duration
	// WriteTimeout is how long a write to a client may block. Default: DefaultWriteTimeout.
	WriteTimeout time.Duration
}

// WithDefaults returns a copy of c with default values for unset fields.
func (c Config) WithDefaults() Config {
	if c.KeepAlive == 0 {
		c.KeepAlive = DefaultKeepAlive
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = DefaultWriteTimeout
	}
	if c.RoundInterval == 0 {
		c.RoundInterval = roundInterval
	}
	return c
}

// Handler serves streams of server-sent events. It is safe for concurrent use. The caller must Close it.
type Handler struct {
	Config
	feeds   *runFeeds
	all     *allFeed
	replays chan struct{} // holds one token per replay
	// validations holds one token per client whose id is being validated.
	validations chan struct{}
}

// New returns a handler.
func New(c Config) *Handler {
	c = c.WithDefaults()
	return &Handler{
		Config: c, feeds: newRunFeeds(c.Events, c.Pollers, c.Log),
		all:     newAllFeed(recentRuns{c.Index, c.Reader, c.Events}, c.RoundInterval, c.Log),
		replays: make(chan struct{}, replaysAtOnce), validations: make(chan struct{}, validationsAtOnce),
	}
}

// Close stops the feeds of the handler and waits for them.
func (h *Handler) Close() {
	h.feeds.close()
	h.all.close()
}

// CountFeeds returns the number of feeds of runs that have ever been started.
func (h *Handler) CountFeeds() int { return h.feeds.countStarted() }

// CountOpen returns the number of open feeds.
func (h *Handler) CountOpen() int { return h.feeds.countOpen() }

// pathValues holds the values in the path of a stream.
type pathValues struct{ run, task string }

// serve answers one request with a stream, which it begins after validating the request.
type serve func(ctx context.Context, w http.ResponseWriter, r *http.Request, s *eventstream.Stream, path pathValues) error

// route is the handler of a path with streams.
type route struct {
	serve serve
	call  protoreflect.MethodDescriptor // determines the rules of the path
}

// call returns the call of RunService with the given name.
func call(name protoreflect.Name) protoreflect.MethodDescriptor {
	return v1.File_switchyard_v1_run_service_proto.Services().ByName("RunService").Methods().ByName(name)
}

// Wrap returns a handler that serves requests for streams and passes all others to next.
func (h *Handler) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch found, path := h.route(r); {
		case found.serve != nil && wantsStream(r):
			h.serveStream(w, r, found, path)
		case found.serve != nil:
			next.ServeHTTP(w, withoutFollow(r))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// route returns the route of a request, or a zero route if the path has no streams.
func (h *Handler) route(r *http.Request) (route, pathValues) {
	escaped := r.URL.EscapedPath()
	if r.Method != http.MethodGet || strings.Contains(strings.ToLower(escaped), "%2f") || strings.ContainsFunc(r.URL.Path, unicode.IsControl) {
		return route{}, pathValues{} // REST reports the problem with the path
	}
	var parts []string
	for part := range strings.SplitSeq(strings.Trim(escaped, "/"), "/") {
		text, err := url.PathUnescape(part)
		if err != nil {
			return route{}, pathValues{}
		}
		parts = append(parts, text)
	}
	if parts[0] == "v1" {
		parts = parts[1:]
	}
	at := func(k int) string {
		if k < len(parts) {
			return parts[k]
		}
		return ""
	}
	switch path := (pathValues{run: at(1), task: at(3)}); {
	case at(0) == "events" && len(parts) == 1:
		return route{h.allEvents, call("ListRunEvents")}, path
	case at(0) != "runs" || at(1) == "":
	case len(parts) == 3 && at(2) == "events":
		return route{h.runEvents, call("ListRunEvents")}, path
	case len(parts) == 3 && at(2) == "logs", len(parts) == 5 && at(2) == "tasks" && at(3) != "" && at(4) == "logs":
		return route{h.logs, call("StreamRunLogs")}, path
	}
	return route{}, pathValues{}
}

// wantsStream reports whether a request asks for a stream, by its parameter follow or its Accept header. An invalid value
// of follow counts as a stream, which then reports the error.
func wantsStream(r *http.Request) bool {
	query := r.URL.Query()
	if acceptsStream(r) || !query.Has(followParameter) {
		return acceptsStream(r)
	}
	follow, err := strconv.ParseBool(query.Get(followParameter))
	return err != nil || follow
}

// withoutFollow returns a request without the parameter follow, which lists do not accept.
func withoutFollow(r *http.Request) *http.Request {
	query := r.URL.Query()
	if !query.Has(followParameter) {
		return r
	}
	query.Del(followParameter)
	r = r.Clone(r.Context())
	r.URL.RawQuery = query.Encode()
	return r
}

// acceptsStream reports whether the Accept header of a request lists the content type of streams.
func acceptsStream(r *http.Request) bool {
	for _, header := range r.Header.Values("Accept") {
		for accepted := range strings.SplitSeq(header, ",") {
			if kind, _, err := mime.ParseMediaType(accepted); err == nil && kind == contentType {
				return true
			}
		}
	}
	return false
}

func (h *Handler) serveStream(w http.ResponseWriter, r *http.Request, found route, path pathValues) {
	began := time.Now()
	if err := auth.Authorize(r.Context(), found.call); err != nil {
		auth.Refuse(w, r, err)
		return
	}
	leave, err := h.Bounds.EnterStream(r.RemoteAddr)
	if err != nil {
		rpcerror.WriteJSON(w, 0, err)
		return
	}
	defer leave()
	s := eventstream.New(w, h.KeepAlive, h.WriteTimeout)
	err = auth.EndOf(r.Context(), rpcerror.ToConnect(found.serve(r.Context(), w, r, s, path)))
	switch {
	case s.HasBegun():
		why := ""
		if err != nil {
			why = err.Error()
		}
		s.Close(why)
	case err != nil:
		rpcerror.WriteJSON(w, 0, err)
	}
	level := slog.LevelDebug
	if code := connect.CodeOf(err); err != nil && r.Context().Err() == nil && (code == connect.CodeInternal || code == connect.CodeUnknown) {
		level = slog.LevelError
	}
	h.Log.LogAttrs(r.Context(), level, "stream", slog.String("path", r.URL.Path), slog.Duration("took", time.Since(began)), slog.Any("error", err))
}
