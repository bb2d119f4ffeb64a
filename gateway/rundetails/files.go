package rundetails

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"

	"connectrpc.com/connect"

	"switchyard/activities/artifacts"
	"switchyard/activities/store"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// ArtifactPath is the path below /v1 under which an artifact is served, as a pattern of http.ServeMux.
const ArtifactPath = "/runs/{id}/tasks/{task}/artifacts/{name}"

const (
	// downloadsAtOnce bounds the open downloads and lists of files. Each holds a chunk or a list in memory.
	downloadsAtOnce = 32
	// openTimeout bounds the search for an artifact.
	openTimeout = 30 * time.Second
	// writeTimeout is how long a write to a client may block.
	writeTimeout = 30 * time.Second
)

// files serves what tasks have left.
type files struct {
	index    *runindex.Index
	reader   *runview.Reader
	results  results
	library  *artifacts.Library
	slots    chan struct{} // holds one token per download and list
	stopping <-chan struct{}
	log      *slog.Logger
}

// ServeArtifact serves an artifact of a task as a tar archive, or with the parameter path one of its files. Browsers show neither.
func (f files) ServeArtifact(w http.ResponseWriter, r *http.Request) {
	leave, err := f.enter()
	if err != nil {
		rpcerror.WriteJSON(w, 0, err)
		return
	}
	defer leave()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	ended := make(chan struct{})
	defer func() { cancel(); <-ended }()
	go func() {
		defer close(ended)
		select {
		case <-f.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	name, content, err := f.open(ctx, r)
	if err != nil {
		rpcerror.WriteJSON(w, 0, rpcerror.ToConnect(err))
		return
	}
	header := w.Header()
	header.Set("Content-Type", "application/x-tar")
	if r.URL.Query().Has(pathParameter) {
		header.Del("Content-Type") // http.ServeContent guesses it
	}
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "sandbox")
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	header.Set("Cache-Control", "private, no-cache")
	header.Set("ETag", `"`+content.Tag()+`"`)
	if strings.Contains(r.Header.Get("Range"), ",") {
		r.Header.Del("Range") // parts in any order would read each chunk many times
	}
	control := http.NewResponseController(w)
	http.ServeContent(timedWriter{w, control}, r, name, time.Time{}, loggedReader{content, func(err error) {
		if ctx.Err() == nil {
			f.log.Warn("an artifact cannot be read", "path", r.URL.Path, "error", err)
		}
	}})
	_ = control.SetWriteDeadline(time.Time{}) // the connection may serve further requests
}

// pathParameter is the parameter that names a file of an artifact.
const pathParameter = "path"

// open opens what a request asks for, and returns the name for its file.
func (f files) open(ctx context.Context, r *http.Request) (name string, content *artifacts.Reader, err error) {
	search, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	query := r.URL.Query()
	for parameter, values := range query {
		if parameter != pathParameter || len(values) != 1 {
			return "", nil, rpcerror.Invalid("unknown or repeated parameter %.80q; an artifact has the parameter %s", parameter, pathParameter)
		}
	}
	a, err := f.find(search, r.PathValue("id"), r.PathValue("task"), r.PathValue("name"))
	if err != nil {
		return "", nil, err
	}
	if name = path.Base(query.Get(pathParameter)); query.Has(pathParameter) {
		content, err = f.library.OpenFile(ctx, a, query.Get(pathParameter))
	} else {
		name = a.GetName() + ".tar"
		content, err = f.library.OpenTar(ctx, a)
	}
	if errors.Is(err, artifacts.ErrNoFile) {
		err = rpcerror.NotFound("artifact %s has no file %.200q; a link or a folder is only in its archive", a.GetName(), query.Get(pathParameter))
	}
	return name, content, removedError(a, err)
}

// removedError returns the error of an artifact that cannot be opened. Its code is NotFound if the artifact was removed.
func removedError(a *v1.Artifact, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return rpcerror.NotFound("artifact %s was removed", a.GetName())
	}
	return err
}

// enter takes a slot, until leave is called. Its error is ResourceExhausted if all are taken.
func (f files) enter() (leave func(), err error) {
	select {
	case f.slots <- struct{}{}:
		return func() { <-f.slots }, nil
	default:
		return nil, connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("the gateway is at its limit of %d open downloads; try again later", downloadsAtOnce))
	}
}

// find returns an artifact of a task or an instance of a run that the caller may see.
func (f files) find(ctx context.Context, run, task, name string) (*v1.Artifact, error) {
	id, err := f.index.Resolve(ctx, run)
	if err != nil {
		return nil, err
	}
	v, err := f.reader.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	of, index, isInstance := names.ParseInstanceName(task)
	if !isInstance {
		of = task
	}
	t := v.Tasks[of]
	if t == nil {
		return nil, v.NoTask(of)
	}
	result, record := t.Task.GetResult(), t.Record
	if isInstance {
		found, err := f.reader.Completed(ctx, v, of, index)
		if err != nil {
			return nil, err
		}
		if result, record = nil, ""; found != nil {
			result, record = found.Instance.GetResult(), found.Record
		}
	}
	result = f.results.stored(ctx, id, task, result, record)
	a := v1.ArtifactNamed(result.GetArtifacts(), name)
	if v1.IsRunTerminal(v.Run.GetState()) && artifacts.HasExpired(a, time.Now()) {
		return nil, rpcerror.NotFound("artifact %s of task %s of run %s expired at %s (artifacts.keep); `switchyard runs retry %s --from %s` runs the task again", name, task, id, a.GetExpiresAt().AsTime().Format(time.RFC3339), id, of)
	}
	if a != nil {
		return a, nil
	}
	return nil, rpcerror.NotFound("task %s of run %s has left no artifact %.80q", task, id, name)
}

// timedWriter bounds how long each write may block.
type timedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

// Write writes a part of the body.
func (w timedWriter) Write(p []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // a call within this process has no deadlines
	return w.ResponseWriter.Write(p)
}

// loggedReader reports why an artifact cannot be read, which http.ServeContent does not.
type loggedReader struct {
	*artifacts.Reader
	failed func(error)
}

// Read reads a part of the artifact.
func (l loggedReader) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		l.failed(err)
	}
	return n, err
}
