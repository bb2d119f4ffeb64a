package store

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"
)

// Open opens the store that a URL names:
//
//	/dir, dir, file:///dir   a folder, which is made if need be; several processes may share it
//	mem://                   memory of this process; gone when it ends
//
// The context is for the opening alone; neither of these needs it.
func Open(_ context.Context, location string) (*Store, error) {
	scheme, rest, isURL := strings.Cut(location, "://")
	switch {
	case location == "":
		return nil, fmt.Errorf("open store: no folder or URL is given")
	case !isURL:
		return openFolder(location)
	case scheme == "mem" && rest == "":
		return newStore(memblob.OpenBucket(nil), ""), nil
	case scheme == "mem":
		return nil, fmt.Errorf("open store %q: a store in memory is just mem://", location)
	case scheme == "file":
		u, err := url.Parse(location)
		if err != nil {
			return nil, fmt.Errorf("open store: %w", err)
		}
		if u.Host != "" || u.RawQuery != "" || u.Fragment != "" || u.Path == "" {
			return nil, fmt.Errorf("open store %q: write a folder as a path, or as file:///absolute/path", location)
		}
		return openFolder(filepath.FromSlash(u.Path))
	default:
		return nil, fmt.Errorf("open store %q: unknown scheme %q; a store is a folder (a path, or file:///absolute/path) or mem://", location, scheme)
	}
}

func openFolder(dir string) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open store %q: %w", dir, err)
	}
	bucket, err := fileblob.OpenBucket(dir, &fileblob.Options{
		CreateDir: true,
		// Without it, each value has a second file of attributes that nobody reads.
		Metadata: fileblob.MetadataDontWrite,
		// A file cannot be renamed into place from another file system.
		NoTempDir: true,
	})
	if err != nil {
		return nil, fmt.Errorf("open store %q: %w", dir, err)
	}
	return newStore(bucket, dir), nil
}
