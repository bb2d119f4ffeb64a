package logs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	v1 "switchyard/proto/switchyard/v1"
)

// Resume returns a writer that continues the log of a dispatch whose writer has ended. The caller must write stdout again
// from Position, and stderr from its start. The writer skips as many bytes at the beginning as the log already has.
// Output that the previous writer could not store shifts this count; in stdout the next mark corrects it. A log that has
// its end gets nothing more. With Options.Held, the caller must write only what the previous writer has not received. The error is
// that of the store.
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
	if o.Held == nil {
		return w, nil
	}
	if err := w.takeUp(o.Held); err != nil {
		w.cancel()
		return nil, fmt.Errorf("continue the log of attempt %d (claim %d) of task %s of run %s: %w", a.Attempt, a.Claim, a.Task, a.Run, err)
	}
	return w, nil
}

// heldStream is what a writer has received of a stream beyond what it has logged, in JSON form.
type heldStream struct {
	Masked json.RawMessage `json:"masked,omitempty"`
	Tail   []byte          `json:"tail,omitempty"`
	Total  int64           `json:"total"`
}

// Held returns what Options.Held of a later writer needs to continue the streams with new output. It may hold parts of secrets.
// Nothing may be written afterwards.
func (w *Writer) Held() ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := map[string]heldStream{}
	var errs []error
	for _, s := range []*stream{&w.stdout, &w.stderr} {
		k := heldStream{Tail: s.tail.bytes, Total: s.tail.total}
		if s.masked != nil {
			var err error
			k.Masked, err = s.masked.Save()
			errs = append(errs, err)
		}
		held[s.name] = k
	}
	text, err := json.Marshal(held)
	return text, errors.Join(append(errs, err)...)
}

// takeUp makes the streams continue those that an earlier writer held.
func (w *Writer) takeUp(text []byte) error {
	held := map[string]heldStream{}
	errs := []error{json.Unmarshal(text, &held)}
	for _, s := range []*stream{&w.stdout, &w.stderr} {
		k := held[s.name]
		s.skip, s.tail.bytes, s.tail.total = 0, k.Tail, k.Total
		if s.masked != nil && k.Masked != nil {
			masked, err := w.opts.Masks.Continue(k.Masked)
			s.masked = masked
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
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
