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

// partPatience bounds how long storing one part may take.
const partPatience = 5 * time.Minute

// Writer stores an archive in parts. It stores one part in the background while the caller writes the next. It is not safe for
// concurrent use, except for Stored.
type Writer struct {
	ctx     context.Context
	library *Library
	archive string
	sum     hash.Hash
	size    int64
	parts   int
	buf     []byte
	spare   []byte     // buffer of the part that is being stored; empty otherwise
	putting chan error // nil if no part is being stored
	err     error
	closed  bool
	stored  atomic.Int64
}

// NewWriter returns a Writer for a new copy of an archive that is reserved for this node. Writes fail once ctx ends. The caller
// must call Close.
func (l *Library) NewWriter(ctx context.Context, archive string) *Writer {
	return &Writer{
		ctx: ctx, library: l, archive: archiveOf(archive) + "/" + randomHex(8), sum: sha256.New(),
		buf: make([]byte, 0, PartBytes), spare: make([]byte, 0, PartBytes),
	}
}

// Write appends bytes to the archive and stores each part when it is full.
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

// Close stores the last part and waits until all parts are stored or one of them has failed. A second Close returns the same
// error.
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

// put waits for the previous part and then starts storing the buffer as the next one.
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
		// The part may already exist: the reply to an earlier attempt was lost.
		_, err := w.library.store.PutIfAbsent(ctx, storekey.EnvironmentPart(w.archive, n), part)
		if err == nil {
			w.stored.Add(int64(len(part)))
		}
		done <- err
	}()
}

// await waits until no part is being stored, and records the first error.
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

// Stored returns the number of bytes stored so far.
func (w *Writer) Stored() int64 { return w.stored.Load() }

// Archive returns the name of the copy, in the form of v1.Environment.archive.
func (w *Writer) Archive() string { return w.archive }

// Size returns the number of bytes written.
func (w *Writer) Size() int64 { return w.size }

// Parts returns the number of parts, including one that is still being stored.
func (w *Writer) Parts() int { return w.parts }

// Digest returns the hexadecimal SHA-256 of the bytes written.
func (w *Writer) Digest() string { return hex.EncodeToString(w.sum.Sum(nil)) }
