package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/singleflight"
)

// Options configure Images.
type Options struct {
	// CacheDir is where downloaded images are kept. It belongs to one Images at a time, and must be on the file system
	// of the machines. The first download creates it.
	CacheDir string
	// Directories are the absolute paths of the node's directories that images may be in. If there are none, no path is
	// allowed.
	Directories []string
	// OpenObject opens an object of a bucket and returns when it was last changed. nil means that the node has no
	// access to buckets.
	OpenObject func(ctx context.Context, url string) (io.ReadCloser, time.Time, error)
	// Environments finds named environments. nil means that the node has no access to environments.
	Environments executor.Environments
	// Logger receives errors that do not fail a call. nil means slog.Default.
	Logger *slog.Logger
}

// Images provides the images of a node. Its methods are safe for concurrent use.
type Images struct {
	opts      Options
	downloads singleflight.Group[Base]
	now       func() time.Time
}

// NewImages returns the images of a node. It removes downloads that were cut off and images that are no longer used.
func NewImages(o Options) (*Images, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	m := &Images{opts: o, now: time.Now}
	if err := m.removePartial(); err != nil {
		return nil, err
	}
	m.sweep()
	return m, nil
}

// Ensure returns the image of a reference: an absolute path of the node, an object of a bucket (s3://, gs://), or the
// name of an environment. An image that is not on the node, or has changed, is downloaded once for all concurrent
// callers; say receives lines of progress. An *executor.StartError means that the reference or the image is at fault.
func (m *Images) Ensure(ctx context.Context, ref string, say func(string)) (base Base, err error) {
	switch {
	case filepath.IsAbs(ref):
		base, err = m.ofNode(ctx, ref)
	case strings.Contains(ref, "://"):
		base, err = m.ofBucket(ctx, ref, say)
	case ref == "":
		return Base{}, badSpec(errors.New("the machine has no image; specify a path, a URL or the name of an environment"))
	default:
		base, err = m.ofEnvironment(ctx, ref, say)
	}
	if err != nil {
		return Base{}, fmt.Errorf("image %s: %w", ref, err)
	}
	return base, nil
}
