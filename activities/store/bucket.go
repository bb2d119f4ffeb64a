package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"switchyard/activities/store/storekey"
)

// bucket stores values in a bucket: memory, S3 or GCS.
type bucket struct {
	*blob.Bucket
	url string
	// chunk is the unit of the writer's buffer size, in bytes, or 0 if the bucket has no such unit or a sensible default.
	chunk int
}

// gcsChunk is the unit of the buffer size of Google's client, whose default buffer is 16 MiB.
const gcsChunk = 256 << 10

var _ backend = (*bucket)(nil)

func (b *bucket) put(ctx context.Context, key string, value []byte) error {
	return b.write(ctx, key, value, false)
}

// conflictPause is the wait before the retry of a conditional write that conflicted with another one.
const conflictPause = 50 * time.Millisecond

func (b *bucket) putIfAbsent(ctx context.Context, key string, value []byte) (bool, error) {
	for {
		err := b.write(ctx, key, value, true)
		switch {
		case gcerrors.Code(err) == gcerrors.FailedPrecondition:
			return true, nil
		case !isConflict(err):
			return false, err
		}
		// S3 has not decided between two simultaneous writes and asks for a retry.
		select {
		case <-time.After(conflictPause):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// isConflict reports whether S3 answered 409 to a conditional write.
func isConflict(err error) bool {
	coded, ok := errors.AsType[interface {
		error
		ErrorCode() string
	}](err)
	return ok && coded.ErrorCode() == "ConditionalRequestConflict"
}

func (b *bucket) write(ctx context.Context, key string, value []byte, ifAbsent bool) error {
	ctx, abort := context.WithCancel(ctx)
	defer abort()
	// Bucket.WriteAll would compute the MD5 sum of the value twice.
	w, err := b.NewWriter(ctx, key, &blob.WriterOptions{
		DisableContentTypeDetection: true,
		ContentType:                 "application/octet-stream",
		IfNotExist:                  ifAbsent,
		BufferSize:                  b.bufferFor(len(value)),
	})
	if err != nil {
		return err
	}
	if _, err = w.Write(value); err != nil {
		// Close would store the half of the value that was written.
		abort()
		_ = w.Close()
		return err
	}
	return w.Close()
}

// bufferFor returns a buffer size that exceeds the value, so that one request stores the value.
func (b *bucket) bufferFor(bytes int) int {
	if b.chunk == 0 {
		return 0
	}
	return (bytes/b.chunk + 1) * b.chunk
}

func (b *bucket) get(ctx context.Context, key string) ([]byte, error) {
	r, err := b.NewReader(ctx, key, nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	var value bytes.Buffer
	// The size may be that of another version if the key is being overwritten.
	value.Grow(int(r.Size()) + bytes.MinRead)
	_, err = value.ReadFrom(r)
	return value.Bytes(), errors.Join(err, r.Close())
}

func (b *bucket) findChunks(ctx context.Context, digests [][]byte) ([]bool, error) {
	return findChunks(ctx, b, digests, func(key string) (bool, error) { return b.Exists(ctx, key) })
}

func (b *bucket) keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for object, err := range b.objects(ctx, &blob.ListOptions{Prefix: prefix}) {
			if err != nil {
				yield("", err)
				return
			}
			if !yield(object.Key, nil) {
				return
			}
		}
	}
}

// objects yields the objects of a list, and ends after the first error.
func (b *bucket) objects(ctx context.Context, o *blob.ListOptions) iter.Seq2[*blob.ListObject, error] {
	return func(yield func(*blob.ListObject, error) bool) {
		list := b.List(o)
		for {
			object, err := list.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(object, err) || err != nil {
				return
			}
		}
	}
}

func (b *bucket) runs(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for object, err := range b.objects(ctx, &blob.ListOptions{Prefix: storekey.RunsPrefix, Delimiter: "/"}) {
			if err != nil {
				yield("", err)
				return
			}
			run := strings.TrimSuffix(strings.TrimPrefix(object.Key, storekey.RunsPrefix), "/")
			if object.IsDir && !yield(run, nil) {
				return
			}
		}
	}
}

func (b *bucket) newest(ctx context.Context, run string) (time.Time, error) {
	var newest time.Time
	for object, err := range b.objects(ctx, &blob.ListOptions{Prefix: storekey.RunPrefix(run)}) {
		if err != nil {
			return time.Time{}, err
		}
		if object.ModTime.After(newest) {
			newest = object.ModTime
		}
	}
	return newest, nil
}

func (b *bucket) size(ctx context.Context, prefix string) (bytes int64, err error) {
	for object, err := range b.objects(ctx, &blob.ListOptions{Prefix: prefix}) {
		if err != nil {
			return 0, err
		}
		bytes += object.Size
	}
	return bytes, nil
}

func (b *bucket) deleteRun(ctx context.Context, run string) error {
	for key, err := range b.keys(ctx, storekey.RunPrefix(run)) {
		if err == nil {
			err = b.delete(ctx, key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bucket) delete(ctx context.Context, key string) error {
	if err := b.Delete(ctx, key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return err
	}
	return nil
}

func (b *bucket) deleteOlder(ctx context.Context, prefix string, before time.Time) (removed int, err error) {
	for object, err := range b.objects(ctx, &blob.ListOptions{Prefix: prefix}) {
		if err != nil {
			return removed, err
		}
		if !object.ModTime.Before(before) {
			continue
		}
		if err := b.delete(ctx, object.Key); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}

func (b *bucket) location() string { return b.url }

func (b *bucket) close() error { return b.Close() }
