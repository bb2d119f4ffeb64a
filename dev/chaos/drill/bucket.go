package drill

import (
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"switchyard/activities/store/storetest"
)

// bucket is an S3-compatible store that can fail.
type bucket struct {
	server   *http.Server
	location string

	mu    sync.Mutex
	fault func(w http.ResponseWriter, r *http.Request) (answered bool) // nil while the bucket works
}

// bucketVariables is the environment that a client of the bucket needs.
var bucketVariables = []string{
	"AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret", "AWS_REGION=eu-west-1",
	"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null",
}

// startBucket starts a bucket and makes the gateways of the cluster store their values in it. It must be called before
// they start.
func (y *Cluster) startBucket() (*bucket, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &bucket{location: "s3://bucket?use_path_style=true&endpoint=" + url.QueryEscape("http://"+listener.Addr().String())}
	objects := &storetest.S3{Objects: storetest.NewObjects()}
	b.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		fault := b.fault
		b.mu.Unlock()
		if fault == nil || !fault(w, r) {
			objects.ServeHTTP(w, r)
		}
	})}
	go func() { _ = b.server.Serve(listener) }() // until the server is closed
	y.store, y.bucket = b.location, b
	return b, nil
}

// setFault makes the bucket fail in the given way, or work again if fault is nil.
func (b *bucket) setFault(fault func(http.ResponseWriter, *http.Request) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = fault
}

// refuse replies with an internal error of the store.
func refuse(w http.ResponseWriter, _ *http.Request) bool {
	http.Error(w, "<Error><Code>InternalError</Code></Error>", http.StatusInternalServerError)
	return true
}

// slowAnswer is the response time of a slow store.
const slowAnswer = 20 * time.Second

// delay delays the response.
func delay(_ http.ResponseWriter, r *http.Request) bool {
	select {
	case <-time.After(slowAnswer):
		return false
	case <-r.Context().Done():
		return true
	}
}
