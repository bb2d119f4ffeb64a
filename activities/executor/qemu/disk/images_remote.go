package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
)

// bucketSchemes are the URL schemes of buckets that images may come from.
var bucketSchemes = []string{"s3://", "gs://"}

// source is where an image is downloaded from.
type source struct {
	// kind and ref identify the source; version identifies its current content.
	kind, ref, version string
	// size is the number of bytes, or 0 if it is not known.
	size int64
	// reader provides the bytes. The download closes it.
	reader io.ReadCloser
}

// ofBucket returns the image in an object of a bucket.
func (m *Images) ofBucket(ctx context.Context, url string, say func(string)) (Base, error) {
	if !slices.ContainsFunc(bucketSchemes, func(scheme string) bool { return strings.HasPrefix(url, scheme) }) {
		return Base{}, badSpec(errors.New("not a bucket URL; images come from s3:// and gs://"))
	}
	if m.opts.OpenObject == nil {
		return Base{}, &executor.StartError{ExitCode: exitCannotRun, Err: errors.New("this node has no access to buckets")}
	}
	return m.downloads.Do(ctx, url, say, func(ctx context.Context, say func(string)) (Base, error) {
		reader, changed, err := m.opts.OpenObject(ctx, url)
		if err != nil {
			return Base{}, err
		}
		return m.cached(ctx, source{kind: "object", ref: url, version: fmt.Sprint(changed.UnixNano()), reader: reader}, say)
	})
}

// environmentTries is how often ofEnvironment retries when the newest version is replaced during its download.
const environmentTries = 5

// ofEnvironment returns the image in the newest version of a named environment.
func (m *Images) ofEnvironment(ctx context.Context, name string, say func(string)) (Base, error) {
	if m.opts.Environments == nil {
		return Base{}, &executor.StartError{ExitCode: exitCannotRun, Err: errors.New("this node has no access to environments")}
	}
	return m.downloads.Do(ctx, name, say, func(ctx context.Context, say func(string)) (base Base, err error) {
		for range environmentTries {
			if base, err = m.ofVersion(ctx, name, say); !errors.Is(err, executor.ErrNoEnvironment) || ctx.Err() != nil {
				return base, err
			}
			// Another version may have taken its place.
			if _, missing := m.opts.Environments.Find(ctx, name); missing != nil {
				return Base{}, &executor.StartError{ExitCode: exitCannotRun, Err: fmt.Errorf("%w; list those that are ready with `switchyard env list`", err)}
			}
		}
		return Base{}, fmt.Errorf("the environment is replaced faster than it can be downloaded: %w", err)
	})
}

// ofVersion returns the image in the version of an environment that is newest at the time of the call.
func (m *Images) ofVersion(ctx context.Context, name string, say func(string)) (Base, error) {
	e, err := m.opts.Environments.Find(ctx, name)
	if err != nil {
		return Base{}, err
	}
	if e.GetKind() != v1.EnvironmentDisk {
		return Base{}, badSpec(errors.New("the environment is a container image, which a virtual machine cannot boot; " +
			"use it with backend: docker, or make one of a virtual machine by `switchyard env create --from`"))
	}
	s := source{kind: "environment", ref: name, version: e.GetDigest(), size: e.GetSize()}
	if base, ok := m.findCached(ctx, s); ok {
		return base, nil
	}
	if s.reader, err = m.opts.Environments.Open(ctx, e); err != nil {
		return Base{}, err
	}
	return m.cached(ctx, s, say)
}

// cached returns the image of a source from the cache, after downloading it if necessary. It closes the reader.
func (m *Images) cached(ctx context.Context, s source, say func(string)) (base Base, err error) {
	defer func() { err = errors.Join(err, s.reader.Close()) }()
	if base, ok := m.findCached(ctx, s); ok {
		return base, nil
	}
	return m.download(ctx, s, say)
}
