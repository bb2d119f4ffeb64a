package logs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
)

// arm starts the timer that stores waiting output. The caller holds mu.
func (w *Writer) arm() {
	if w.armed || w.sending || w.closed || w.sealed == nil && w.pending.empty() {
		return
	}
	wait := w.opts.FlushInterval
	if w.sealed != nil {
		wait = max(wait, time.Until(w.retryAt))
	}
	w.armed = true
	if w.timer == nil {
		w.timer = time.AfterFunc(wait, w.flush)
	} else {
		w.timer.Reset(wait)
	}
}

// flush stores waiting output when the timer fires.
func (w *Writer) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = false
	// If another goroutine is sending, it arms the timer again.
	if !w.sending && !w.closed && (w.sealed != nil || !w.pending.empty()) {
		w.send(w.stored)
	}
}

// send stores one chunk, which is the sealed one or else the pending one, and reports success. On failure the chunk stays
// sealed. The caller holds mu, which send releases meanwhile. No other call may be sending.
func (w *Writer) send(ctx context.Context) bool {
	if w.sealed == nil {
		w.seal(false)
	}
	key, value := w.attempt.chunkKey(w.next), w.sealed
	w.sending = true
	w.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, w.opts.StoreTimeout)
	began := time.Now()
	err := w.store.Put(ctx, key, value)
	took := time.Since(began)
	cancel()

	w.mu.Lock()
	w.sending = false
	if err == nil {
		w.sealed, w.sealedBytes = nil, 0
		w.next++
	} else if w.failure = err; errors.Is(err, store.ErrLogQuota) {
		w.cut("the logs of this run have reached their quota (--log-quota-gb)")
	} else if errors.Is(err, store.ErrLowSpace) {
		w.cut(err.Error())
	} else {
		// A store that fails only after a while must not delay the task each time.
		w.retryAt = time.Now().Add(max(w.opts.FlushInterval, 2*took))
	}
	w.idle.Broadcast()
	w.arm()
	return err == nil
}

// seal encodes the pending chunk as the sealed one. The caller holds mu.
func (w *Writer) seal(end bool) {
	const noticeSize = 512
	out := make([]byte, 0, w.pending.encodedSize()+noticeSize)
	if w.unsaid > 0 {
		out = appendRecord(out, &v1.LogEntry{
			Stream: Stderr,
			Time:   timestamppb.Now(),
			Notice: true,
			Data:   fmt.Appendf(nil, "\n[switchyard: %d bytes of output are missing here; they could not be stored]\n", w.unsaid),
		})
		w.unsaid = 0
	}
	out = w.pending.encode(out)
	if end {
		out = append(out, endMark)
	}
	w.sealed, w.sealedBytes = out, len(w.pending.data)
	w.pending.clear()
}
