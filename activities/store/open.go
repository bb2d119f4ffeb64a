package store

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"switchyard/activities/gatewayclient"
)

// Open opens the store that a URL names:
//
//	/dir, dir, file:///dir   a folder, which is created if necessary; several processes may share it
//	s3://bucket, gs://bucket a bucket of S3 or Google Cloud Storage, with the options of gocloud.dev as query,
//	                         such as ?prefix=switchyard/ or ?region=eu-west-1; credentials come from their
//	                         standard sources; the program imports package clouds
//	http://host:7280, https  a gateway, which keeps the values of runs in its own store; or several gateways of one
//	                         store, separated by commas
//	mem://                   memory of this process; lost when the process ends
//
// ctx applies only to the opening. Open does not contact a gateway.
func Open(ctx context.Context, location string) (*Store, error) {
	return OpenWith(ctx, location, Options{})
}

// Options configures how a store is opened.
type Options struct {
	// Gateways is the connection to use if the store is that of a gateway; its Options.Identify must be GatewayIdentity. nil
	// means a new connection without a token.
	Gateways *gatewayclient.Conn
}

// OpenWith opens the store at a location: a folder, a bucket, a gateway, or mem:// for one in memory.
func OpenWith(ctx context.Context, location string, o Options) (*Store, error) {
	b, err := openBackend(ctx, location, o)
	if err != nil {
		return nil, err
	}
	return newStore(b), nil
}

func openBackend(ctx context.Context, location string, o Options) (backend, error) {
	if dir, isFolder := FolderOf(location); isFolder {
		return openFloored(dir)
	}
	scheme, rest, _ := strings.Cut(location, "://")
	switch {
	case location == "":
		return nil, fmt.Errorf("open store: no folder or URL is given")
	case scheme == "mem" && rest == "":
		return &bucket{Bucket: memblob.OpenBucket(nil), url: location}, nil
	case scheme == "mem":
		return nil, fmt.Errorf("open store %q: a store in memory is just mem://", location)
	case IsGateway(location):
		return openRemote(location, o)
	}
	u, err := url.Parse(location)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	switch scheme {
	case "file":
		return nil, fmt.Errorf("open store %q: write a folder as a path, or as file:///absolute/path", location)
	case "s3", "gs":
		if u.Host == "" || strings.Trim(u.Path, "/") != "" {
			return nil, fmt.Errorf("open store %q: write %s://bucket, and for a part of the bucket %s://bucket?prefix=part/", location, scheme, scheme)
		}
		b, err := blob.OpenBucket(ctx, location)
		if err != nil {
			return nil, fmt.Errorf("open store %q: %w", location, err)
		}
		chunk := 0
		if scheme == "gs" {
			chunk = gcsChunk
		}
		return &bucket{Bucket: b, url: location, chunk: chunk}, nil
	}
	return nil, fmt.Errorf("open store %q: unknown scheme %q; a store is a folder (a path, or file:///absolute/path), s3://bucket, gs://bucket, a gateway (http://host:7280) or mem://", location, scheme)
}

// FolderOf returns the folder that a location of Open names. isFolder is false if the location names no folder.
func FolderOf(location string) (dir string, isFolder bool) {
	if !strings.Contains(location, "://") {
		return location, location != ""
	}
	u, err := url.Parse(location)
	if err != nil || u.Scheme != "file" || u.Host != "" || u.RawQuery != "" || u.Fragment != "" || u.Path == "" {
		return "", false
	}
	return filepath.FromSlash(u.Path), true
}

// IsGateway reports whether a location of Open names a gateway.
func IsGateway(location string) bool {
	return strings.HasPrefix(location, "http://") || strings.HasPrefix(location, "https://")
}
