package store_test

import (
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchyard/activities/store"
	"switchyard/activities/store/storetest"
)

// gcs is a fake of the part of the Google Cloud Storage API that a store uses, for one bucket named "bucket".
type gcs struct{ storetest.Objects }

// openGCS opens a store in a bucket of its own.
func openGCS(t *testing.T) *store.Store {
	t.Helper()
	o := &gcs{storetest.NewObjects()}
	server := httptest.NewServer(o)
	t.Cleanup(server.Close)
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(server.URL, "http://"))
	return open(t, "gs://bucket?prefix=part/")
}

func (o *gcs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	query := r.URL.Query()
	if key, ok := strings.CutPrefix(r.URL.Path, "/bucket/"); ok {
		o.read(w, key)
		return
	}
	if r.URL.Path == "/upload/storage/v1/b/bucket/o" {
		o.upload(w, r, query)
		return
	}
	key, ok := strings.CutPrefix(r.URL.Path, "/storage/v1/b/bucket/o")
	key = strings.TrimPrefix(key, "/")
	switch {
	case !ok:
		http.Error(w, r.URL.Path, http.StatusNotFound)
	case key == "":
		o.list(w, query)
	case query.Get("alt") == "media":
		o.read(w, key)
	case o.Values[key] == nil:
		http.Error(w, key, http.StatusNotFound)
	case r.Method == http.MethodDelete:
		delete(o.Values, key)
		w.WriteHeader(http.StatusNoContent)
	default:
		o.answer(w, o.describe(key))
	}
}

func (o *gcs) read(w http.ResponseWriter, key string) {
	value := o.Values[key]
	if value == nil {
		http.Error(w, key, http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(value)))
	w.Header().Set("X-Goog-Generation", "1")
	w.Header().Set("Last-Modified", o.Modified[key].UTC().Format(http.TimeFormat))
	_, _ = w.Write(value)
}

// upload stores an object from a multipart request, which starts with the object's metadata.
func (o *gcs) upload(w http.ResponseWriter, r *http.Request, query url.Values) {
	_, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || query.Get("uploadType") != "multipart" {
		http.Error(w, "no multipart upload", http.StatusBadRequest)
		return
	}
	parts := multipart.NewReader(r.Body, parameters["boundary"])
	var described struct{ Name string }
	part, err := parts.NextPart()
	if err == nil {
		err = json.NewDecoder(part).Decode(&described)
	}
	if err == nil {
		part, err = parts.NextPart()
	}
	value := []byte{}
	if err == nil {
		value, err = io.ReadAll(part)
	}
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case query.Get("ifGenerationMatch") == "0" && o.Values[described.Name] != nil:
		http.Error(w, described.Name, http.StatusPreconditionFailed)
	default:
		o.Set(described.Name, value)
		o.answer(w, o.describe(described.Name))
	}
}

func (o *gcs) describe(key string) map[string]any {
	return map[string]any{
		"kind": "storage#object", "bucket": "bucket", "name": key, "generation": "1", "metageneration": "1",
		"size": strconv.Itoa(len(o.Values[key])), "updated": o.Modified[key].UTC().Format(time.RFC3339Nano),
	}
}

func (o *gcs) list(w http.ResponseWriter, query url.Values) {
	names, more := o.Find(query.Get("prefix"), query.Get("delimiter"), query.Get("pageToken"), query.Get("maxResults"))
	found := map[string]any{"kind": "storage#objects"}
	if more {
		found["nextPageToken"] = names[len(names)-1]
	}
	items, prefixes := []any{}, []string{}
	for _, name := range names {
		if o.Values[name] != nil {
			items = append(items, o.describe(name))
		} else {
			prefixes = append(prefixes, name)
		}
	}
	found["items"], found["prefixes"] = items, prefixes
	o.answer(w, found)
}

func (o *gcs) answer(w http.ResponseWriter, message any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(message)
}
