package client

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"switchyard/cli/exit"
)

// cutWriter aborts a response after a number of bytes.
type cutWriter struct {
	http.ResponseWriter
	left int
}

func (w *cutWriter) Write(p []byte) (int, error) {
	if w.left < len(p) {
		_, _ = w.ResponseWriter.Write(p[:w.left])
		_ = http.NewResponseController(w.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	w.left -= len(p)
	return w.ResponseWriter.Write(p)
}

// TestDownloadContinuesWhereItWas cuts a download several times, once right before its end, and then changes the artifact.
func TestDownloadContinuesWhereItWas(t *testing.T) {
	t.Parallel()
	whole := bytes.Repeat([]byte("0123456789"), 100_000)
	for name, cuts := range map[string][]int{"never": nil, "in the middle": {300_001, 17, 400_000}, "before the end": {len(whole)}} {
		var ranges []string
		changed := false
		server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/runs/r-1/tasks/each[3]/artifacts/app" {
				http.NotFound(w, r)
				return
			}
			n := len(ranges)
			ranges = append(ranges, r.Header.Get("Range"))
			w.Header().Set("ETag", `"one"`)
			if changed && n > 0 {
				w.Header().Set("ETag", `"two"`)
			}
			if n < len(cuts) {
				w = &cutWriter{w, cuts[n]}
			}
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(whole))
			if n < len(cuts) {
				panic(http.ErrAbortHandler)
			}
		}))
		list, err := ParseGateways("test", server.URL)
		if err != nil {
			t.Fatal(err)
		}
		a := New(list, Options{})
		t.Cleanup(a.Close)
		var got bytes.Buffer
		lost := 0
		if err := a.Artifact(t.Context(), "r-1", "each[3]", "app", &got, func() { lost++ }); err != nil || !bytes.Equal(got.Bytes(), whole) {
			t.Errorf("cut %s: %v, %d bytes after %v", name, err, got.Len(), ranges)
		}
		if lost > len(cuts) || len(cuts) > 1 && (lost < 1 || ranges[1] != "bytes=300001-") {
			t.Errorf("cut %s: lost %d times, requested %v", name, lost, ranges)
		}
		if len(cuts) < 2 {
			continue
		}
		ranges, changed = nil, true
		err = a.Artifact(t.Context(), "r-1", "each[3]", "app", &got, func() {})
		if coded, ok := errors.AsType[*exit.Error](err); !ok || coded.Code != exit.CodeNotDone || !strings.Contains(err.Error(), "changed meanwhile") {
			t.Errorf("an artifact that has changed: %v", err)
		}
		err = a.Artifact(t.Context(), "r-2", "build", "app", &got, func() {})
		if coded, ok := errors.AsType[*exit.Error](err); !ok || coded.Code != exit.CodeSystem && coded.Code != exit.CodeUsage || connect.CodeOf(err) == connect.CodeUnavailable {
			t.Errorf("another path: %v", err)
		}
	}
}
