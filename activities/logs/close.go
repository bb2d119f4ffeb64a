package logs

import (
	"context"
	"fmt"
	"time"
)

// closeTries is how often Close tries to store a chunk, FlushInterval apart.
const closeTries = 3

// Close stores what is left and the end of the log, and lets go of everything
// the Writer holds but the tails. When ctx ends it stops trying; a store that
// pays no heed to its context is left to itself. Close returns an error when
// some of the output is not in the log, or its end is not. A second Close
// returns what the first did.
func (w *Writer) Close(ctx context.Context) error { return w.close(ctx, false) }

// Suspend is Close of a log that another writer continues: it stores what is left without the end of the log. What the
// streams hold back because of masks is left to the other writer. A Close afterwards returns what Suspend did.
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

// finish stores what is left. The caller holds mu.
func (w *Writer) finish(ctx context.Context) error {
	stored := w.sealed == nil || w.trySend(ctx)
	isBegun := w.next > 0 && !w.suspended // it takes a chunk to end it
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
	return fmt.Errorf("store the log of attempt %d (claim %d) of task %s of run %s: %d bytes of output are missing: %w",
		w.attempt.Attempt, w.attempt.Claim, w.attempt.Task, w.attempt.Run, w.lost, err)
}

// trySend stores the sealed chunk, or the end of a log that had to be cut, if need be with a few tries. The caller holds
// mu, and trySend gives it up meanwhile.
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

// pause lets a failing store have some time, unless ctx ends first. The caller
// holds mu, and pause gives it up meanwhile.
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
