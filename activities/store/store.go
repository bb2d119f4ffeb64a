package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
	"google.golang.org/protobuf/proto"
)

// ErrNotFound is in the chain of the error of a Get whose key has no value.
var ErrNotFound = errors.New("not found")

// Store holds values under keys. A value is there whole or not at all: a reader
// never sees half of one, and neither does a later reader when the writer is
// killed half-way. The last Put of a key wins. Its methods may be called from
// several goroutines and, on one bucket, from several processes at once.
type Store struct {
	bucket *blob.Bucket
	// dir is the bucket's folder; empty when it is not one.
	dir   string
	close func() error
}

// temporary is how the names of files end that a writer to a folder has not
// finished; a writer that is killed leaves such a file behind.
const temporary = ".tmp"

func newStore(bucket *blob.Bucket, dir string) *Store {
	return &Store{bucket: bucket, dir: dir, close: sync.OnceValue(bucket.Close)}
}

// Put stores value under key.
func (s *Store) Put(ctx context.Context, key string, value []byte) error {
	ctx, abort := context.WithCancel(ctx)
	defer abort()
	// Bucket.WriteAll would compute an MD5 sum of the value, twice.
	w, err := s.bucket.NewWriter(ctx, key, &blob.WriterOptions{DisableContentTypeDetection: true})
	if err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	_, err = w.Write(value)
	if err != nil {
		// Close would keep the half of the value that was written.
		abort()
		_ = w.Close()
	} else {
		err = w.Close()
	}
	if err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	return nil
}

// Get returns the value under key. Without one the error is ErrNotFound, and
// that answer is cheap.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	r, err := s.bucket.NewReader(ctx, key, nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	var b bytes.Buffer
	// The size is that of another version when the key is being overwritten.
	b.Grow(int(r.Size()) + bytes.MinRead)
	_, err = b.ReadFrom(r)
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return b.Bytes(), nil
}

// PutMessage stores m, in the binary form of protobuf, under key.
func (s *Store) PutMessage(ctx context.Context, key string, m proto.Message) error {
	value, err := proto.Marshal(m)
	if err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	return s.Put(ctx, key, value)
}

// GetMessage reads into m what PutMessage stored under key. Without a value the
// error is ErrNotFound.
func (s *Store) GetMessage(ctx context.Context, key string, m proto.Message) error {
	value, err := s.Get(ctx, key)
	if err != nil {
		return err
	}
	if err := proto.Unmarshal(value, m); err != nil {
		return fmt.Errorf("read %s: %w", key, err)
	}
	return nil
}

// Keys yields, in their order, the keys that start with prefix, and ends after
// the first error. In a folder it costs a look at each file below the last
// slash of prefix.
func (s *Store) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		list := s.bucket.List(&blob.ListOptions{Prefix: prefix})
		for {
			object, err := list.Next(ctx)
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield("", fmt.Errorf("list %s: %w", prefix, err))
				return
			case s.dir != "" && strings.HasSuffix(object.Key, temporary):
			case !yield(object.Key, nil):
				return
			}
		}
	}
}

// DeleteRun removes every value of a run. A run without values is no error.
func (s *Store) DeleteRun(ctx context.Context, run string) error {
	if err := checkRun(run); err != nil {
		return fmt.Errorf("delete the values of a run: %w", err)
	}
	if s.dir != "" {
		// The bucket would leave the directories behind, and look at each of
		// the files anew for every thousand.
		if err := os.RemoveAll(filepath.Join(s.dir, filepath.FromSlash(RunPrefix(run)))); err != nil {
			return fmt.Errorf("delete the values of run %s: %w", run, err)
		}
		return nil
	}
	for key, err := range s.Keys(ctx, RunPrefix(run)) {
		if err == nil {
			err = s.bucket.Delete(ctx, key)
		}
		if err != nil && gcerrors.Code(err) != gcerrors.NotFound {
			return fmt.Errorf("delete the values of run %s: %w", run, err)
		}
	}
	return nil
}

// Location is what Open opens this store by, from another process too unless it
// is mem://.
func (s *Store) Location() string {
	if s.dir == "" {
		return "mem://"
	}
	return s.dir
}

// Close ends the use of the store. A second Close does nothing.
func (s *Store) Close() error { return s.close() }
