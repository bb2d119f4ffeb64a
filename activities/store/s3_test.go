package store_test

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchyard/activities/store"
)

// s3 is as much of the API of S3 as a store uses, for one bucket called "bucket".
type s3 struct {
	objects
	// conflicts is how many conditional writes are still answered with a conflict.
	conflicts int
}

// openS3 opens a store in a bucket of its own.
func openS3(t *testing.T) (*store.Store, *s3) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_REGION", "eu-west-1")
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	o := &s3{objects: newObjects()}
	server := httptest.NewServer(o)
	t.Cleanup(server.Close)
	return open(t, "s3://bucket?use_path_style=true&prefix=part/&endpoint="+url.QueryEscape(server.URL)), o
}

func (o *s3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key, ok := strings.CutPrefix(r.URL.Path, "/bucket")
	key = strings.TrimPrefix(key, "/")
	value, exists := o.values[key]
	switch {
	case !ok:
		fail(w, http.StatusNotFound, "NoSuchBucket")
	case r.Method == http.MethodGet && key == "":
		o.list(w, r.URL.Query())
	case r.Method == http.MethodPut && o.conflicts > 0 && r.Header.Get("If-None-Match") == "*":
		o.conflicts--
		fail(w, http.StatusConflict, "ConditionalRequestConflict")
	case r.Method == http.MethodPut && exists && r.Header.Get("If-None-Match") == "*":
		fail(w, http.StatusPreconditionFailed, "PreconditionFailed")
	case r.Method == http.MethodPut:
		body, err := body(r)
		if err != nil {
			fail(w, http.StatusBadRequest, err.Error())
			return
		}
		o.set(key, body)
	case r.Method == http.MethodDelete:
		delete(o.values, key)
		w.WriteHeader(http.StatusNoContent)
	case !exists:
		fail(w, http.StatusNotFound, "NoSuchKey")
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		w.Header().Set("Content-Length", strconv.Itoa(len(value)))
		w.Header().Set("Last-Modified", o.modified[key].UTC().Format(http.TimeFormat))
		_, _ = w.Write(value)
	default:
		fail(w, http.StatusMethodNotAllowed, "MethodNotAllowed")
	}
}

func fail(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", code)
}

// body is what a request brings, out of the chunks of AWS when it is in some.
func body(r *http.Request) ([]byte, error) {
	if !strings.Contains(r.Header.Get("Content-Encoding"), "aws-chunked") {
		return io.ReadAll(r.Body)
	}
	var all []byte
	for in := bufio.NewReader(r.Body); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		size, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		n, err := strconv.ParseUint(size, 16, 32)
		if err != nil || n == 0 {
			return all, err
		}
		part := make([]byte, n+2) // with its line end
		if _, err := io.ReadFull(in, part); err != nil {
			return nil, err
		}
		all = append(all, part[:n]...)
	}
}

type listedObject struct {
	Key          string
	LastModified time.Time
	Size         int
}

type listedPrefix struct{ Prefix string }

type listing struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	Contents              []listedObject
	CommonPrefixes        []listedPrefix
	IsTruncated           bool
	NextContinuationToken string
}

func (o *s3) list(w http.ResponseWriter, query url.Values) {
	names, more := o.find(query.Get("prefix"), query.Get("delimiter"), query.Get("continuation-token"), query.Get("max-keys"))
	found := listing{IsTruncated: more}
	if more {
		found.NextContinuationToken = names[len(names)-1]
	}
	for _, name := range names {
		if value, ok := o.values[name]; ok {
			found.Contents = append(found.Contents, listedObject{name, o.modified[name], len(value)})
		} else {
			found.CommonPrefixes = append(found.CommonPrefixes, listedPrefix{name})
		}
	}
	text, err := xml.Marshal(found)
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	_, _ = w.Write(text)
}

func TestS3AsksAgainAfterAConflict(t *testing.T) {
	s, o := openS3(t)
	o.conflicts = 2
	existed, err := s.PutIfAbsent(t.Context(), store.StatusKey("ci-0k", 0), []byte("x"))
	if err != nil || existed {
		t.Errorf("existed %t, %v", existed, err)
	}
	if !strings.HasPrefix(s.Location(), "s3://bucket?") {
		t.Errorf("location %q", s.Location())
	}
	for key := range o.values {
		if key != "part/"+store.StatusKey("ci-0k", 0) {
			t.Errorf("object %q", key)
		}
	}
}
