package logs

import (
	"fmt"
	"io/fs"
	"time"

	"switchyard/activities/store"
)

// take adds p to the log as far as the limit allows. position is where p begins in its source, or "". The caller holds
// mu.
func (w *Writer) take(stream string, by printer, position string, p []byte) error {
	if w.full {
		return nil
	}
	room := w.opts.MaxBytes - w.taken
	fits := int64(len(p)) <= room
	if !fits {
		// Set before add releases mu, so that the other stream adds no more.
		w.full = true
		p = p[:room]
	}
	w.taken += int64(len(p))
	if err := w.add(stream, by, position, p); err != nil || fits {
		return err
	}
	return w.add(Stderr, w.system(), "", fmt.Appendf(nil,
		"\n[switchyard: the log of this attempt is full at %d bytes; what follows is left out, and the task continues]\n", w.opts.MaxBytes))
}

// cut ends the log with the reason why the store refuses more of it, if there is room for that. The caller holds mu.
func (w *Writer) cut(why string) {
	w.lost += int64(w.sealedBytes + len(w.pending.data))
	w.sealed, w.sealedBytes, w.unsaid = nil, 0, 0
	w.pending.clear()
	if !w.isCut {
		w.full, w.isCut = true, true
		w.pending.add(Stderr, w.system(), time.Now(), "",
			fmt.Appendf(nil, "\n[switchyard: the log ends here: %s; the task continues]\n", why), store.MaxNoticeBytes)
	}
	if w.closed {
		w.seal(!w.suspended)
		w.ended = true
	}
}

// add puts all of p into chunks and waits for room in them. The caller holds mu, which add releases while it waits.
func (w *Writer) add(stream string, by printer, position string, p []byte) error {
	for now := time.Now(); len(p) > 0; {
		n := w.pending.add(stream, by, now, position, p, w.opts.ChunkBytes)
		if p = p[n:]; n > 0 {
			position = ""
			continue
		}
		w.makeRoom(by, position)
		if w.closed {
			return fs.ErrClosed
		}
		now = time.Now()
	}
	w.arm()
	return nil
}

// system returns the printer for notices, which are attributed to the instance that is printing.
func (w *Writer) system() printer {
	by := w.by
	by.notice = true
	return by
}

// makeRoom must be called when pending is full, and again if pending is still full afterwards. It stores the sealed or
// pending chunk, waits for the goroutine that is doing so, or drops what is pending if the store fails. The caller holds
// mu, which makeRoom releases for a while.
func (w *Writer) makeRoom(by printer, position string) {
	switch {
	case w.sending:
		w.idle.Wait()
	case w.sealed != nil && time.Now().Before(w.retryAt):
		w.drop()
	case !w.send(w.stored) && w.pending.room(by, position, w.opts.ChunkBytes) == 0:
		w.drop()
	}
}

// drop discards what is pending. The caller holds mu.
func (w *Writer) drop() {
	w.lost += int64(len(w.pending.data))
	w.unsaid += int64(len(w.pending.data))
	w.pending.clear()
}
