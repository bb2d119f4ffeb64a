package logs

import (
	"context"
	"io"
	"io/fs"
	"sync"
	"time"

	"switchyard/activities/secrets/mask"
)

// Writer stores what one dispatch of an attempt prints, while it prints it.
//
// A task never fails because of its log: a chunk that cannot be stored is tried
// again while the next one fills, what comes when both are full is left out,
// and Close says so. A store that is slow slows down the task instead, since
// nothing else would keep memory bounded.
//
// Output that is left out, after a failure, beyond Options.MaxBytes or because the
// store runs out of space, is announced by an entry on the stream stderr. Tails have it regardless.
type Writer struct {
	store   Store
	attempt Attempt
	opts    Options
	// stored is the context of writes to the store before Close; cancel ends them.
	stored context.Context
	cancel context.CancelFunc

	mu sync.Mutex
	// idle is signalled when a write to the store has ended, and by Close.
	idle           *sync.Cond
	stdout, stderr stream
	// by is who prints now.
	by printer
	// pending gathers output. sealed is the encoded chunk that is to be stored
	// under the number next, with so many bytes of output; nil when there is
	// none. sending says that a goroutine is storing it, which does not hold mu.
	pending     chunk
	sealed      []byte
	sealedBytes int
	next        int64
	sending     bool
	// timer stores what is pending; armed says that it is going to.
	timer *time.Timer
	armed bool
	// taken is how much output the log has taken on; full says that it takes no more.
	taken int64
	full  bool
	// isCut says that the store takes no more.
	isCut bool
	// ended says that an earlier writer has ended the log.
	ended bool
	// lost is how much of that could not be stored, unsaid how much of it no
	// notice has yet, failure the newest error of the store; before retryAt
	// the store is not asked again.
	lost    int64
	unsaid  int64
	failure error
	retryAt time.Time

	// position is where in the source of stdout the writer continues.
	position string

	// suspended says that the log was closed without its end.
	closed, suspended bool
	closeErr          error
}

// NewWriter returns a writer for the log of a. It must be closed.
func NewWriter(s Store, a Attempt, o Options) *Writer {
	w := &Writer{store: s, attempt: a, opts: o.withDefaults()}
	w.idle = sync.NewCond(&w.mu)
	w.stored, w.cancel = context.WithCancel(context.Background())
	w.stdout = stream{w: w, name: Stdout, tail: tail{keep: w.opts.TailBytes}}
	w.stderr = stream{w: w, name: Stderr, tail: tail{keep: w.opts.TailBytes}}
	if o.Masks != nil {
		w.stdout.masked, w.stderr.masked = o.Masks.Stream(), o.Masks.Stream()
	}
	return w
}

// Stream returns where the stream Stdout or Stderr is to be written; another
// name panics. Each takes one Write at a time, and both may be written at once.
// Write fails only after Close, with fs.ErrClosed; it waits while the store is
// slower than the task.
func (w *Writer) Stream(name string) io.Writer { return w.stream(name) }

// Begin says that from now on an instance of a batch prints, by its name and the
// numbers of its attempt and its claim: its output is found under its name, and the tails are its
// own. No goroutine is writing to a stream.
func (w *Writer) Begin(instance string, attempt, claim int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.release()
	w.by = printer{task: instance, attempt: attempt, claim: claim}
	w.stdout.tail.clear()
	w.stderr.tail.clear()
}

// Flush says that the program has ended: what was held back because of masks is in the log and in the tails. No goroutine
// is writing to a stream.
func (w *Writer) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.release()
}

// release writes what the streams hold back. The caller holds mu.
func (w *Writer) release() {
	for _, s := range []*stream{&w.stdout, &w.stderr} {
		if s.masked != nil && !w.closed {
			_ = s.add(s.masked.Flush(nil)) // fails only once closed
		}
	}
}

// Notice adds a line of the system's own to the stream stderr of the log; tails do
// not have it. It is lost when the log is full or closed.
func (w *Writer) Notice(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		_ = w.take(Stderr, w.system(), "", []byte("[switchyard: "+w.opts.Masks.Text(text)+"]\n")) // fails only once closed
	}
}

// Tail returns the end of what has been written to the stream Stdout or Stderr:
// at most Options.TailBytes of valid UTF-8, in which bytes that are none are
// replaced, and whether that leaves something out. It may be called at any
// time, also after Close.
func (w *Writer) Tail(name string) (text string, truncated bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stream(name).tail.text()
}

func (w *Writer) stream(name string) *stream {
	switch name {
	case Stdout:
		return &w.stdout
	case Stderr:
		return &w.stderr
	}
	panic("logs: no stream is called " + name)
}

type stream struct {
	w    *Writer
	name string
	tail tail
	// skip is how much of what comes first the log has already.
	skip int64
	// mark is where in its source the next byte begins, or "" if that is not known.
	mark string
	// masked replaces secrets, and buffer is what it gives; masked is nil where there are none.
	masked *mask.Stream
	buffer []byte
}

func (s *stream) Write(p []byte) (int, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if s.w.closed {
		return 0, fs.ErrClosed
	}
	written := p
	if s.masked != nil {
		s.buffer = s.masked.Append(s.buffer[:0], p)
		written = s.buffer
	}
	if err := s.add(written); err != nil {
		return 0, err
	}
	return len(p), nil
}

// add adds to the log and to the tail. The caller holds the writer's mu, which add gives up while it waits.
func (s *stream) add(p []byte) error {
	s.tail.add(p)
	if p = s.unseen(p); len(p) == 0 {
		return nil
	}
	position := s.mark
	s.mark = ""
	return s.w.take(s.name, s.w.by, position, p)
}
