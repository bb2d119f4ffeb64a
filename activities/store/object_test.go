package store_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"switchyard/activities/store"
)

func TestOpenObject(t *testing.T) {
	_, bucket := openS3(t)
	server := httptest.NewServer(bucket)
	t.Cleanup(server.Close)
	bucket.Set("images/a tool.tar", []byte("archive"))
	changed := time.Now().Add(-time.Hour).Truncate(time.Second)
	bucket.Modified["images/a tool.tar"] = changed
	t.Setenv("AWS_ENDPOINT_URL", server.URL)
	r, at, err := store.OpenObject(t.Context(), "s3://bucket/images/a%20tool.tar")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil || string(text) != "archive" || !at.Equal(changed) {
		t.Errorf("%q, %v, changed %s, not %s", text, err, at, changed)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"s3://bucket/none.tar", "s3://bucket", "https://host/x", "file:///x", "s3:///x", "::"} {
		if _, _, err := store.OpenObject(t.Context(), bad); err == nil || !strings.HasPrefix(err.Error(), "open object") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// The node signs its requests with its own credentials, so a task must not choose their destination.
func TestOpenObjectTakesNoOptions(t *testing.T) {
	openS3(t)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked for %s", r.URL) }))
	t.Cleanup(server.Close)
	for _, options := range []string{"?use_path_style=true&endpoint=" + url.QueryEscape(server.URL), "?region=eu-west-1", "?"} {
		if _, _, err := store.OpenObject(t.Context(), "s3://bucket/a.tar"+options); err == nil || !strings.Contains(err.Error(), "AWS_ENDPOINT_URL") {
			t.Errorf("%s: %v", options, err)
		}
	}
}
