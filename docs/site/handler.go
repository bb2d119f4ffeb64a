package site

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

// drawingPolicy lets a drawing that is opened as a page use the style inside of it, and nothing else.
const drawingPolicy = "default-src 'none'; style-src 'unsafe-inline'"

// Handler serves the site of the pages in files below a path, such as /docs/. It renders the pages at the first request. There
// is nothing but the pages and their pictures, and no path leads elsewhere.
func Handler(prefix string, files fs.FS, log *slog.Logger) http.Handler {
	render := sync.OnceValues(func() (map[string][]byte, error) { return Render(files) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site, err := render()
		if err != nil {
			log.Error("cannot render the documentation", "error", err)
			http.Error(w, "the documentation could not be rendered; see the gateway log", http.StatusInternalServerError)
			return
		}
		name := strings.TrimPrefix(r.URL.Path, prefix)
		if name == "" {
			name = htmlPath(indexPage)
		}
		data, ok := site[name]
		if !ok {
			http.Error(w, "the documentation has no page of this name; "+prefix+" lists all pages", http.StatusNotFound)
			return
		}
		sum := sha256.Sum256(data)
		w.Header().Set("Etag", `"`+hex.EncodeToString(sum[:8])+`"`)
		w.Header().Set("Cache-Control", "no-cache")
		if path.Ext(name) == ".svg" {
			w.Header().Set("Content-Security-Policy", drawingPolicy)
		}
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
	})
}
