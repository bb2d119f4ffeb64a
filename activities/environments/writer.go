package environments

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"sync/atomic"
	"time"

	"switchyard/activities/store/storekey"
)

// partPatience is how long one part may take to be stored.
const partPatience = 5 * time.Minute

// Writer stores an archive in parts, one while the next is being written. It is not safe for concurrent use, but for Stored.
type Writer struct {
	ctx     context.Context
	library *Library
	archive string
	sum     hash.Hash
	size    int64
	parts   int
	buf     []byte
	spare   []byte     // empty: the buffer of the part that is being stored
	putting chan error // nil: no part is being stored
	err     error
	closed  bool
	stored  atomic.Int64
}

// NewWriter returns a Writer of a new copy of an archive, which is reserved for the node. The caller calls Close. The end of ctx ends
// it.
func (l *Library) NewWriter(ctx context.Context, archive string) *Writer {
	return &Writer{
		ctx: ctx, library: l, archive: archiveOf(archive) + "/" + randomHex(8), sum: sha256.New(),
		buf: make([]byte, 0, PartBytes), spare: make([]byte, 0, PartBytes),
	}
}

// Write takes bytes of the archive, and stores each part that is complete.
func (w *Writer) Write(p []byte) (n int, err error) {
	if w.closed && w.err == nil {
		return 0, fmt.Errorf("archive %s is complete", w.archive)
	}
	for len(p) > 0 && w.err == nil {
		taken := min(len(p), PartBytes-len(w.buf))
		w.buf = append(w.buf, p[:taken]...)
		_, _ = w.sum.Write(p[:taken])
		w.size += int64(taken)
		p, n = p[taken:], n+taken
		if len(w.buf) == PartBytes {
			w.put()
		}
	}
	return n, w.err
}

// Close stores what is left, and returns when all parts are stored or one of them cannot be. A second Close returns the same.
func (w *Writer) Close() error {
	if w.closed {
		return w.err
	}
	w.closed = true
	if len(w.buf) > 0 && w.err == nil {
		w.put()
	}
	w.await()
	return w.err
}

// put begins to store the buffer as the next part, after the one before.
func (w *Writer) put() {
	if w.await(); w.err != nil {
		return
	}
	part, n, done := w.buf, w.parts, make(chan error, 1)
	w.buf, w.spare, w.putting = w.spare[:0], part, done
	w.parts++
	go func() {
		ctx, cancel := context.WithTimeout(w.ctx, partPatience)
		defer cancel()
		// The part was stored before: the answer to an earlier try was lost.
		_, err := w.library.store.PutIfAbsent(ctx, storekey.EnvironmentPart(w.archive, n), part)
		if err == nil {
			w.stored.Add(int64(len(part)))
		}
		done <- err
	}()
}

// await waits until no part is being stored.
func (w *Writer) await() {
	if w.putting == nil {
		return
	}
	err := <-w.putting
	w.putting = nil
	if w.err == nil {
		w.err = err
	}
}

// Stored returns how many bytes are stored so far.
func (w *Writer) Stored() int64 { return w.stored.Load() }

// Archive returns the name of the copy, as v1.Environment.archive has it.
func (w *Writer) Archive() string { return w.archive }

// Size returns how many bytes were written.
func (w *Writer) Size() int64 { return w.size }

// Parts returns how many parts they are.
func (w *Writer) Parts() int { return w.parts }

// Digest returns the SHA-256 of what was written, in hexadecimal digits.
func (w *Writer) Digest() string { return hex.EncodeToString(w.sum.Sum(nil)) }
