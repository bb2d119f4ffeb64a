package logs

import (
	"context"
	"io"
	"io/fs"
	"sync"
	"time"

	"switchyard/activities/secrets/mask"
)

// Writer stores the output of one dispatch of an attempt while it is printed.
//
// A task never fails because of its log. A chunk that cannot be stored is retried while the next one fills; output that
// comes when both are full is dropped, and Close reports the loss. A slow store slows the task down instead, because
// nothing else would bound the memory.
//
// An entry on stderr announces output that is dropped after a failure, beyond Options.MaxBytes, or because the store has
// no space. The tails contain it regardless.
type Writer struct {
	store   Store
	attempt Attempt
	opts    Options
	// stored is the context of writes to the store before Close. cancel ends them.
	stored context.Context
	cancel context.CancelFunc

	mu sync.Mutex
	// idle is signalled when a write to the store has ended, and by Close.
	idle           *sync.Cond
	stdout, stderr stream
	// by is the current printer.
	by printer
	// pending collects output. sealed is the encoded chunk to be stored under the number next, or nil; sealedBytes is the
	// size of its output. sending is set while a goroutine stores it without holding mu.
	pending     chunk
	sealed      []byte
	sealedBytes int
	next        int64
	sending     bool
	// timer stores what is pending. armed is set while it runs.
	timer *time.Timer
	armed bool
	// taken is how much output the log has accepted. full is set once it accepts no more.
	taken int64
	full  bool
	// isCut is set once the store accepts no more.
	isCut bool
	// ended is set if an earlier writer has ended the log.
	ended bool
	// lost is the size of output that could not be stored, and unsaid the part that no notice has announced yet. failure
	// is the latest error of the store, which is not called again before retryAt.
	lost    int64
	unsaid  int64
	failure error
	retryAt time.Time

	// position is where in the source of stdout the writer continues.
	position string

	// suspended is set if the log was closed without its end.
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

// Stream returns the writer for the stream Stdout or Stderr; any other name panics. Each stream accepts one Write at a
// time, and both may be written concurrently. Write fails only after Close, with fs.ErrClosed. It blocks while the store
// is slower than the task.
func (w *Writer) Stream(name string) io.Writer { return w.stream(name) }

// Begin sets the instance of a batch that prints from now on, by its name, attempt and claim. Its output is stored under
// its name and has tails of its own. No goroutine may be writing to a stream.
func (w *Writer) Begin(instance string, attempt, claim int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.release()
	w.by = printer{task: instance, attempt: attempt, claim: claim}
	w.stdout.tail.clear()
	w.stderr.tail.clear()
}

// Flush must be called when the program has ended. It adds output that was held back for masks to the log and the tails.
// No goroutine may be writing to a stream.
func (w *Writer) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.release()
}

// release writes the output that the streams hold back. The caller holds mu.
func (w *Writer) release() {
	for _, s := range []*stream{&w.stdout, &w.stderr} {
		if s.masked != nil && !w.closed {
			_ = s.add(s.masked.Flush(nil)) // fails only after Close
		}
	}
}

// Notice adds a line of the system to stderr in the log, but not to the tails. The line is lost if the log is full or
// closed.
func (w *Writer) Notice(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		_ = w.take(Stderr, w.system(), "", []byte("[switchyard: "+w.opts.Masks.Text(text)+"]\n")) // fails only after Close
	}
}

// Tail returns the end of the stream Stdout or Stderr, at most Options.TailBytes of valid UTF-8 with invalid bytes
// replaced. truncated is true if the stream is longer. Tail may be called at any time, even after Close.
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
	panic("logs: there is no stream " + name)
}

type stream struct {
	w    *Writer
	name string
	tail tail
	// skip is how many bytes at the beginning the log already has.
	skip int64
	// mark is where in its source the next byte begins, or "" if that is unknown.
	mark string
	// masked replaces secrets, or is nil if there are none. buffer holds its output.
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

// add adds to the log and to the tail. The caller holds the writer's mu, which add releases while it waits.
func (s *stream) add(p []byte) error {
	s.tail.add(p)
	if p = s.unseen(p); len(p) == 0 {
		return nil
	}
	position := s.mark
	s.mark = ""
	return s.w.take(s.name, s.w.by, position, p)
}
