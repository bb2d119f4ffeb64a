package environments

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"
	"sync/atomic"

	"switchyard/activities/executor"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

// readAhead is the number of parts that are fetched concurrently while an archive is read.
const readAhead = 3

// Open reads the archive of an environment and fetches some parts ahead. At the end of the archive, Read returns an error instead
// of io.EOF if the size or digest differs from what was stored. Read returns executor.ErrNoEnvironment if the archive was deleted
// meanwhile, for example by a newer version. The caller must call Close.
func (l *Library) Open(ctx context.Context, e *v1.Environment) (io.ReadCloser, error) {
	if !storekey.IsEnvironmentCopy(e.GetArchive()) {
		return nil, fmt.Errorf("environment %s has no archive: %w", e.GetName(), executor.ErrNoEnvironment)
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &reader{ctx: ctx, cancel: cancel, e: e, sum: sha256.New(), parts: make(chan chan part, readAhead-2), ended: make(chan struct{})}
	go r.fetch(l.store)
	return r, nil
}

// part is one part of an archive, or the error that prevented reading it.
type part struct {
	data []byte
	err  error
}

// reader streams an archive until its context ends. It implements io.ReadCloser.
type reader struct {
	ctx    context.Context
	cancel context.CancelFunc

	e     *v1.Environment
	sum   hash.Hash
	size  int64
	rest  []byte         // rest of the current part
	err   error          // io.EOF at the end
	parts chan chan part // in order; each channel receives one part
	ended chan struct{}  // closed when no part is being fetched any longer
}

// fetch fetches the parts concurrently until one fails or the context ends.
func (r *reader) fetch(s *store.Store) {
	defer close(r.ended)
	var fetches sync.WaitGroup
	defer fetches.Wait()
	defer close(r.parts)
	var failed atomic.Bool
	for n := range int(r.e.GetParts()) {
		if failed.Load() {
			return
		}
		fetched := make(chan part, 1)
		fetches.Go(func() {
			data, err := s.Get(r.ctx, storekey.EnvironmentPart(r.e.GetArchive(), n))
			if errors.Is(err, store.ErrNotFound) {
				err = fmt.Errorf("version %d of environment %s was deleted while it was read: %w", r.e.GetVersion(), r.e.GetName(), executor.ErrNoEnvironment)
			}
			if err != nil {
				failed.Store(true)
			}
			fetched <- part{data, err}
		})
		select {
		case r.parts <- fetched:
		case <-r.ctx.Done():
			return
		}
	}
}

// Read returns the next bytes of the archive.
func (r *reader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 && r.err == nil {
		next, ok := <-r.parts
		switch cause := context.Cause(r.ctx); {
		case cause != nil: // parts may be missing
			r.err = cause
		case !ok:
			r.err = r.verify()
		default:
			got := <-next
			r.rest, r.err = got.data, got.err
		}
	}
	if len(r.rest) == 0 {
		return 0, r.err
	}
	n := copy(p, r.rest)
	_, _ = r.sum.Write(r.rest[:n])
	r.rest, r.size = r.rest[n:], r.size+int64(n)
	return n, nil
}

// verify returns io.EOF if the bytes read match the stored size and digest.
func (r *reader) verify() error {
	if digest := hex.EncodeToString(r.sum.Sum(nil)); r.size != r.e.GetSize() || digest != r.e.GetDigest() {
		return fmt.Errorf("the archive of version %d of environment %s is damaged: it has %d bytes with SHA-256 %s, not %d with %s; create the environment again (switchyard env create %s --replace ...)",
			r.e.GetVersion(), r.e.GetName(), r.size, digest, r.e.GetSize(), r.e.GetDigest(), r.e.GetName())
	}
	return io.EOF
}

// Close stops the reader. It also unblocks a Read that is waiting.
func (r *reader) Close() error {
	r.cancel()
	<-r.ended
	return nil
}
