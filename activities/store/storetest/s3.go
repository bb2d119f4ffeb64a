package storetest

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// S3 is a fake of the part of the S3 API that a store uses, for one bucket named "bucket".
type S3 struct {
	Objects
	// Conflicts is how many more conditional writes are answered with a conflict.
	Conflicts int
}

// ServeHTTP implements http.Handler.
func (o *S3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	key, ok := strings.CutPrefix(r.URL.Path, "/bucket")
	key = strings.TrimPrefix(key, "/")
	value, exists := o.Values[key]
	switch {
	case !ok:
		fail(w, http.StatusNotFound, "NoSuchBucket")
	case r.Method == http.MethodGet && key == "":
		o.list(w, r.URL.Query())
	case r.Method == http.MethodPut && o.Conflicts > 0 && r.Header.Get("If-None-Match") == "*":
		o.Conflicts--
		fail(w, http.StatusConflict, "ConditionalRequestConflict")
	case r.Method == http.MethodPut && exists && r.Header.Get("If-None-Match") == "*":
		fail(w, http.StatusPreconditionFailed, "PreconditionFailed")
	case r.Method == http.MethodPut:
		body, err := body(r)
		if err != nil {
			fail(w, http.StatusBadRequest, err.Error())
			return
		}
		o.Set(key, body)
	case r.Method == http.MethodDelete:
		delete(o.Values, key)
		w.WriteHeader(http.StatusNoContent)
	case !exists:
		fail(w, http.StatusNotFound, "NoSuchKey")
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		w.Header().Set("Content-Length", strconv.Itoa(len(value)))
		w.Header().Set("Last-Modified", o.Modified[key].UTC().Format(http.TimeFormat))
		_, _ = w.Write(value)
	default:
		fail(w, http.StatusMethodNotAllowed, "MethodNotAllowed")
	}
}

func fail(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", code)
}

// body returns the body of a request, decoded if it is in aws-chunked encoding.
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

func (o *S3) list(w http.ResponseWriter, query url.Values) {
	names, more := o.Find(query.Get("prefix"), query.Get("delimiter"), query.Get("continuation-token"), query.Get("max-keys"))
	found := listing{IsTruncated: more}
	if more {
		found.NextContinuationToken = names[len(names)-1]
	}
	for _, name := range names {
		if value, ok := o.Values[name]; ok {
			found.Contents = append(found.Contents, listedObject{name, o.Modified[name], len(value)})
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
