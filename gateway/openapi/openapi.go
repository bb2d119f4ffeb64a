package openapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"time"
)

// Path is the path at which a gateway serves the document.
const Path = "/openapi.json"

//go:embed openapi.json
var document []byte

// Document returns a copy of the document, which is JSON.
func Document() []byte { return bytes.Clone(document) }

// Handler serves the document to GET and HEAD requests. A client that sends the current ETag gets status 304.
func Handler() http.Handler {
	sum := sha256.Sum256(document)
	etag := `"` + hex.EncodeToString(sum[:16]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("ETag", etag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(document))
	})
}
