package logs

import (
	"context"
	"fmt"

	v1 "switchyard/proto/switchyard/v1"
)

// Resume returns a writer that continues the log of a dispatch whose writer has ended. The caller must write stdout again
// from Position, and stderr from its start. The writer skips as many bytes at the beginning as the log already has.
// Output that the previous writer could not store shifts this count; in stdout the next mark corrects it. A log that has
// its end gets nothing more. The error is that of the store.
func Resume(ctx context.Context, s Store, a Attempt, o Options) (*Writer, error) {
	w := NewWriter(s, a, o)
	since := tail{keep: w.stdout.tail.keep} // stdout since the newest mark
	for ended := false; !ended; {
		entries, next, end, err := read(ctx, s, a, w.next)
		if err != nil {
			w.cancel()
			return nil, fmt.Errorf("read the log of attempt %d (claim %d) of task %s of run %s to continue it: %w", a.Attempt, a.Claim, a.Task, a.Run, err)
		}
		for _, e := range entries {
			w.addStored(e, &since)
		}
		w.full = end || w.taken >= w.opts.MaxBytes
		w.ended = end
		ended = end || next == w.next
		w.next = next
	}
	return w, nil
}

// addStored counts an entry that the log already has.
func (w *Writer) addStored(e *v1.LogEntry, since *tail) {
	if e.GetNotice() {
		return
	}
	size := int64(len(e.GetData()))
	w.taken += size
	s := w.stream(e.GetStream())
	if s == &w.stdout {
		if e.GetPosition() != "" {
			// Output before the position is not written again.
			s.tail.append(since)
			since.clear()
			s.skip, w.position = 0, e.GetPosition()
		}
		since.add(e.GetData())
	}
	s.skip += size
}

// unseen returns the part of p that the log does not have yet. The caller holds the writer's mu.
func (s *stream) unseen(p []byte) []byte {
	n := min(s.skip, int64(len(p)))
	s.skip -= n
	return p[n:]
}
