package web

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"switchyard/drawing/words"
	"switchyard/gateway/inprocess"
)

// What is served below the address of an artifact.
const (
	contentDownload = "download"
	contentPreview  = "preview"
)

const (
	// maxPreview bounds the size of a file in a preview.
	maxPreview = 5 << 20
	// sniffed is the number of bytes by which http.DetectContentType decides.
	sniffed = 512
	// previewPolicy gives a file an origin of its own, without scripts, forms and requests to others. The style is its own. Only
	// the page may show it.
	previewPolicy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; media-src data:; frame-ancestors 'self'"
)

// forwarded are the headers that a browser may send for a download, and returned those that it gets.
var (
	forwarded = []string{"Range", "If-Range", "If-None-Match"}
	returned  = []string{"Content-Type", "Content-Length", "Content-Range", "Accept-Ranges", "Content-Disposition", "ETag", "Content-Security-Policy"}
)

// openContent requests an artifact from the REST path in the name of the caller of r: with isFile the file that r names, and else
// the archive. An answer without content is an error.
func (w *Web) openContent(ctx context.Context, r *http.Request, isFile bool, header http.Header) (*http.Response, error) {
	query := url.Values{}
	if isFile {
		query.Set("path", r.URL.Query().Get(fileParameter))
	}
	address := inprocess.URL + "/v1/runs/" + url.PathEscape(r.PathValue("run")) + "/tasks/" + url.PathEscape(r.PathValue("task")) +
		"/artifacts/" + url.PathEscape(r.PathValue("artifact")) + "?" + query.Encode()
	to, err := http.NewRequestWithContext(ctx, r.Method, address, nil)
	if err != nil {
		return nil, err
	}
	to.Header = header
	res, err := inprocess.Client{Handler: w.Streams}.Do(to)
	if err == nil && res.StatusCode >= http.StatusBadRequest && res.StatusCode != http.StatusRequestedRangeNotSatisfiable {
		err = errorOfAnswer(res)
		_ = res.Body.Close()
	}
	return res, err
}

// serveArtifact serves an artifact as an archive, or one of its files, as a download.
func (w *Web) serveArtifact(rw http.ResponseWriter, r *http.Request) {
	header := http.Header{}
	for _, name := range forwarded {
		if value := r.Header.Get(name); value != "" {
			header.Set(name, value)
		}
	}
	res, err := w.openContent(r.Context(), r, r.URL.Query().Has(fileParameter), header)
	if err != nil {
		w.writeError(rw, r, err)
		return
	}
	defer res.Body.Close()
	for _, name := range returned {
		if value := res.Header.Get(name); value != "" {
			rw.Header().Set(name, value)
		}
	}
	rw.WriteHeader(res.StatusCode)
	controller, buffer := http.NewResponseController(rw), make([]byte, 64<<10)
	for {
		n, err := res.Body.Read(buffer)
		_ = controller.SetWriteDeadline(time.Now().Add(w.WriteTimeout)) // only a server in a test has no deadlines
		if _, err := rw.Write(buffer[:n]); err != nil {
			return // the browser has left
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// servePreview serves a file of an artifact for a frame of the page: a text, an image or a page without scripts.
func (w *Web) servePreview(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Content-Security-Policy", previewPolicy)
	refuse := func(status int, text string) {
		rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
		rw.WriteHeader(status)
		_, _ = io.WriteString(rw, text+"\n") // fails only if the browser has left
	}
	res, err := w.openContent(r.Context(), r, true, http.Header{})
	if err != nil {
		refuse(http.StatusNotFound, messageOf(err))
		return
	}
	defer res.Body.Close()
	if size, err := strconv.ParseInt(res.Header.Get("Content-Length"), 10, 64); err != nil || size > maxPreview {
		refuse(http.StatusRequestEntityTooLarge, fmt.Sprintf("The file has %s, and up to %s are shown. Download it instead.", words.Size(size), words.Size(maxPreview)))
		return
	}
	content, err := io.ReadAll(io.LimitReader(res.Body, maxPreview))
	if err != nil {
		refuse(http.StatusServiceUnavailable, "The file cannot be read now: "+messageOf(err))
		return
	}
	kind := previewType(r.URL.Query().Get(fileParameter), content)
	if kind == "" {
		refuse(http.StatusUnsupportedMediaType, "The file is neither a text, an image nor a web page. Download it instead.")
		return
	}
	rw.Header().Set("Content-Type", kind)
	rw.Header().Set("Content-Disposition", "inline")
	_, _ = rw.Write(content) // fails only if the browser has left
}

// previewType returns the content type under which a file is shown, or "" if it is not shown. Only the names of web pages and SVG
// images count: a script is a text.
func previewType(name string, content []byte) string {
	kind := http.DetectContentType(content[:min(len(content), sniffed)])
	isText := strings.HasPrefix(kind, "text/")
	switch ext := strings.ToLower(path.Ext(name)); {
	case isText && (ext == ".html" || ext == ".htm"):
		return "text/html; charset=utf-8"
	case isText && ext == ".svg":
		return "image/svg+xml"
	case strings.HasPrefix(kind, "text/plain"):
		return kind
	case isText:
		return "text/plain; charset=utf-8"
	case strings.HasPrefix(kind, "image/"):
		return kind
	}
	return ""
}
