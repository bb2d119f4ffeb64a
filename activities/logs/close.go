package logs

import (
	"context"
	"fmt"
	"time"
)

// closeTries is how often Close tries to store a chunk, with FlushInterval between two tries.
const closeTries = 3

// Close stores the rest and the end of the log, and releases everything except the tails. It stops trying when ctx ends,
// and does not wait for a store that ignores its context. Close returns an error if some output or the end is not in the
// log. A second Close returns the same result.
func (w *Writer) Close(ctx context.Context) error { return w.close(ctx, false) }

// Suspend closes a log that another writer continues. It stores the rest like Close, but without the end of the log.
// Output that the streams hold back for masks is left to the other writer. A later Close returns the result of Suspend.
func (w *Writer) Suspend(ctx context.Context) error { return w.close(ctx, true) }

func (w *Writer) close(ctx context.Context, suspend bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return w.closeErr
	}
	if !suspend {
		w.release()
	}
	w.closed, w.suspended = true, suspend
	if w.timer != nil {
		w.timer.Stop()
	}
	w.idle.Broadcast()
	defer w.cancel()
	defer context.AfterFunc(ctx, func() {
		w.cancel()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.idle.Broadcast()
	})()
	for w.sending && ctx.Err() == nil {
		w.idle.Wait()
	}
	w.closeErr = w.finish(ctx)
	w.sealed, w.pending = nil, chunk{}
	return w.closeErr
}

// finish stores the rest of the log. The caller holds mu.
func (w *Writer) finish(ctx context.Context) error {
	stored := w.sealed == nil || w.trySend(ctx)
	isBegun := w.next > 0 && !w.suspended // an end needs a chunk only if the log has one
	if stored && !w.ended && (isBegun || w.unsaid > 0 || !w.pending.empty()) {
		w.seal(!w.suspended)
		stored = w.trySend(ctx)
	}
	if !stored {
		w.lost += int64(w.sealedBytes + len(w.pending.data))
	}
	if stored && w.lost == 0 {
		return nil
	}
	err := w.failure
	if err == nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("%d bytes of output are missing in the log: %w", w.lost, err)
}

// trySend stores the sealed chunk, or the end of a log that was cut, with a few tries if necessary. The caller holds mu,
// which trySend releases meanwhile.
func (w *Writer) trySend(ctx context.Context) bool {
	for try := range closeTries {
		if w.sending || try > 0 && !w.isCut && !w.pause(ctx) {
			return false
		}
		if w.send(ctx) {
			return true
		}
	}
	return false
}

// pause waits before the next try and returns false if ctx ends first. The caller holds mu, which pause releases
// meanwhile.
func (w *Writer) pause(ctx context.Context) bool {
	w.mu.Unlock()
	defer w.mu.Lock()
	timer := time.NewTimer(w.opts.FlushInterval)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
