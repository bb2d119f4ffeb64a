package web

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"switchyard/docs"
	"switchyard/docs/site"
	"switchyard/gateway/auth"
	"switchyard/gateway/edge"
	"switchyard/gateway/inprocess"
	"switchyard/gateway/web/live"
)

// docsPath is the path prefix of the documentation.
const docsPath = "/docs/"

// Config holds the dependencies and limits of a Web.
type Config struct {
	// Calls serves the services, Streams the server-sent events of logs and the artifacts.
	Calls, Streams http.Handler
	// Feeds keeps the views up to date. Web does not close it.
	Feeds *live.Feeds
	// Lock authenticates requests. Web sets its field Refuse.
	Lock   auth.Lock
	Bounds *edge.Bounds
	// FourEyes refuses decisions about tasks by who submitted their run.
	FourEyes bool
	// ExternalURL returns the URL at which people open the page, or "" if it is not known.
	ExternalURL func() string
	// Version is the version of the program.
	Version string
	Now     func() time.Time
	Log     *slog.Logger
	// Stopping is closed when the gateway shuts down and streams must end.
	Stopping <-chan struct{}
	// KeepAlive is how long a stream may be silent before it sends a comment. WriteTimeout bounds each write to a browser.
	KeepAlive, WriteTimeout time.Duration
}

// Web serves the page. It is safe for concurrent use.
type Web struct {
	Config
	services services
	pages    *pages
	router   router
	handler  http.Handler
	// formMark is the placeholder for the proof of a form in content that callers share.
	formMark string
}

// New returns the page of a gateway.
func New(c Config) *Web {
	w := &Web{Config: c, services: newServices(inprocess.Client{Handler: c.Calls}), router: newRouter(), formMark: "form-" + rand.Text()}
	w.pages = newPages(w.formMark)
	mux := http.NewServeMux()
	for _, v := range views {
		if v.open != nil {
			mux.Handle("GET "+v.pattern, w.serveView(v))
		}
	}
	for _, f := range forms {
		if f.get != nil {
			mux.Handle("GET "+f.pattern, w.serveForm(f, false))
		}
		mux.Handle("POST "+f.pattern, w.serveForm(f, true))
	}
	mux.HandleFunc("GET /ui/runs/{run}/tasks/{task}/download/{what}", w.serveDownload)
	mux.HandleFunc("GET /ui/runs/{run}/tasks/{task}/artifacts/{artifact}/"+contentDownload, w.serveArtifact)
	mux.HandleFunc("GET /ui/runs/{run}/tasks/{task}/artifacts/{artifact}/"+contentPreview, w.servePreview)
	mux.HandleFunc("GET /ui/live", w.serveStream)
	mux.HandleFunc("GET /ui/runs/{run}/report", w.serveReport)
	mux.HandleFunc("POST /ui/actions/{verb}", w.serveAction)
	mux.HandleFunc("/ui/", w.serveNothing)
	open := http.NewServeMux() // to callers who are not logged in
	open.HandleFunc("GET /ui/login", w.serveLogin)
	open.HandleFunc("POST /ui/login", w.logIn)
	open.HandleFunc("POST /ui/logout", w.logOut)
	open.Handle("GET "+assetsPath, serveAssets())
	open.Handle("GET "+docsPath, site.Handler(docsPath, docs.Files, w.Log))
	open.HandleFunc("GET /docs", func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, docsPath, http.StatusSeeOther) })
	open.HandleFunc("GET /ui", func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, "/", http.StatusSeeOther) })
	lock := c.Lock
	lock.Refuse = w.handleUnauthenticated
	locked := withToken(lock.Middleware(mux), c.Lock.ActorHeader)
	w.handler = protect(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if _, pattern := open.Handler(r); pattern != "" {
			open.ServeHTTP(rw, r)
			return
		}
		locked.ServeHTTP(rw, r)
	}))
	return w
}

// Wrap returns a handler that serves the page and the documentation, and passes all other paths to next.
func (w *Web) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
		if path := r.URL.Path; path == "/" && isRead || slices.Contains([]string{"/ui", "/docs"}, path) || strings.HasPrefix(path, "/ui/") || strings.HasPrefix(path, docsPath) {
			w.handler.ServeHTTP(rw, r)
			return
		}
		next.ServeHTTP(rw, r)
	})
}

// isLocked reports whether authentication is on.
func (w *Web) isLocked() bool { return w.Lock.Authenticator != nil }

// protect restricts browsers to content from the gateway itself.
func protect(next http.Handler) http.Handler {
	const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src 'self'; " +
		"manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-src 'self'; frame-ancestors 'none'"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}
