package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"gocloud.dev/blob"
)

// OpenObject opens the object that a URL names, s3://bucket/key or gs://bucket/key, and returns when it was last changed.
// Endpoint, region and credentials come from their standard sources. The URL comes from a task, so options are refused:
// with an endpoint in them, the task could send what the node signs anywhere. The object can be read until ctx ends.
func OpenObject(ctx context.Context, location string) (io.ReadCloser, time.Time, error) {
	u, err := url.Parse(location)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("open object: %w", err)
	}
	key := strings.TrimPrefix(u.Path, "/")
	if u.Scheme != "s3" && u.Scheme != "gs" || u.Host == "" || key == "" {
		return nil, time.Time{}, fmt.Errorf("open object %q: write s3://bucket/key or gs://bucket/key", location)
	}
	if u.RawQuery != "" || u.ForceQuery || u.User != nil {
		return nil, time.Time{}, fmt.Errorf("open object %q: it has options or a user; the node decides where a bucket is and who may read it: set AWS_REGION or AWS_ENDPOINT_URL there", location)
	}
	b, err := blob.OpenBucket(ctx, (&url.URL{Scheme: u.Scheme, Host: u.Host}).String())
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("open object: %w", err)
	}
	r, err := b.NewReader(ctx, key, nil)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("open object: %w", errors.Join(err, b.Close()))
	}
	return &object{r, b}, r.ModTime(), nil
}

// object is an object with a bucket of its own.
type object struct {
	*blob.Reader
	bucket *blob.Bucket
}

func (o *object) Close() error { return errors.Join(o.Reader.Close(), o.bucket.Close()) }
