package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"switchyard/drawing/svg"
)

// assetsPath is the path prefix of the style and the script. The build ID that follows lets browsers cache them forever.
const assetsPath = "/ui/assets/"

// drawingStyle is the asset with the style of graphs and timelines, whose text comes from drawing/svg.
const drawingStyle = "drawing.css"

//go:embed assets
var assetFiles embed.FS

// build identifies the assets and templates of this program.
var build = buildOf(assetFiles, templateFiles)

func buildOf(trees ...fs.FS) string {
	sum := sha256.New()
	sum.Write([]byte(svg.Rules))
	for _, tree := range trees {
		_ = fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := fs.ReadFile(tree, path)
			sum.Write(text)
			return err
		})
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
}

// digest returns a short hash of a text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:12]
}

// assetURL returns the URL of an asset.
func assetURL(name string) string { return assetsPath + build + "/" + name }

// serveAssets returns a handler that serves the assets for the current and any other build ID.
func serveAssets() http.Handler {
	tree, err := fs.Sub(assetFiles, "assets")
	if err != nil {
		panic(err) // unreachable: the folder is embedded
	}
	files := http.FileServerFS(tree)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		of, name, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, assetsPath), "/")
		if !ok || name == "" || strings.HasSuffix(name, "/") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-cache")
		if of == build {
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		if name == drawingStyle {
			http.ServeContent(w, r, name, time.Time{}, strings.NewReader(svg.Rules))
			return
		}
		r = r.Clone(r.Context())
		r.URL.Path, r.URL.RawPath = "/"+name, ""
		files.ServeHTTP(w, r)
	})
}
