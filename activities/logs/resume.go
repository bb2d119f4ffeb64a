package logs

import (
	"context"
	"fmt"
)

// Resume returns a writer that continues with the log of a dispatch whose writer is no more.
// Its streams are to be written again from their start: of what comes first, so much is
// left out as the log has already. What the writer before could not store counts as
// printed later. A log that has its end gets nothing more. The error is that of the store.
func Resume(ctx context.Context, s Store, a Attempt, o Options) (*Writer, error) {
	w := NewWriter(s, a, o)
	for ended := false; !ended; {
		entries, next, end, err := Read(ctx, s, a, w.next)
		if err != nil {
			w.cancel()
			return nil, fmt.Errorf("read the log of attempt %d (claim %d) of task %s of run %s to continue it: %w", a.Attempt, a.Claim, a.Task, a.Run, err)
		}
		for _, e := range entries {
			if !e.GetNotice() {
				w.stream(e.GetStream()).skip += int64(len(e.GetData()))
				w.taken += int64(len(e.GetData()))
			}
		}
		w.full = end || w.taken >= w.opts.MaxBytes
		w.ended = end
		ended = end || next == w.next
		w.next = next
	}
	return w, nil
}

// unseen is what of p the log does not have yet. The caller holds the writer's mu.
func (s *stream) unseen(p []byte) []byte {
	n := min(s.skip, int64(len(p)))
	s.skip -= n
	return p[n:]
}
