package store_test

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"switchyard/activities/store"
	_ "switchyard/activities/store/clouds"
	"switchyard/activities/store/storekey"
	"switchyard/activities/store/storetest"
)

// openS3 opens a store in a bucket of its own.
func openS3(t *testing.T) (*store.Store, *storetest.S3) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_REGION", "eu-west-1")
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	o := &storetest.S3{Objects: storetest.NewObjects()}
	server := httptest.NewServer(o)
	t.Cleanup(server.Close)
	return open(t, "s3://bucket?use_path_style=true&prefix=part/&endpoint="+url.QueryEscape(server.URL)), o
}

func TestS3AsksAgainAfterAConflict(t *testing.T) {
	s, o := openS3(t)
	o.Conflicts = 2
	existed, err := s.PutIfAbsent(t.Context(), storekey.Status("ci-0k", 0), []byte("x"))
	if err != nil || existed {
		t.Errorf("existed %t, %v", existed, err)
	}
	if !strings.HasPrefix(s.Location(), "s3://bucket?") {
		t.Errorf("location %q", s.Location())
	}
	for key := range o.Values {
		if key != "part/"+storekey.Status("ci-0k", 0) {
			t.Errorf("object %q", key)
		}
	}
}
