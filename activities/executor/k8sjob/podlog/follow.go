package podlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// ErrGone reports that the rest of a log is lost, because the pod is gone or its node has removed the log.
var ErrGone = errors.New("the rest of the log was lost with its pod")

// Pod identifies a container of a pod.
type Pod struct {
	Namespace, Name string
	// UID is the UID of the pod, so that the log of another pod with the same name is not read. If it is empty, it is
	// not checked.
	UID       types.UID
	Container string
}

// Options configure Follow.
type Options struct {
	// Position is the argument of Mark at which to resume, or "" for the start of the log.
	Position string
	// Write receives the next piece of the log. Calls are sequential, and Write must not keep p.
	Write func(p []byte) error
	// Mark is called before the first byte of a line, between two calls of Write, about once a second or once in 64
	// KiB. It may be nil. An empty Position stands for the first line.
	Mark func(position string)
	// Ended is closed when the status of the container shows that it has ended. If it is nil, the container never ends.
	Ended <-chan struct{}
	// StallTimeout is how long the log may be silent until Follow opens another stream; 0 means 60 s.
	StallTimeout time.Duration
	// Trouble is called with the reason when the log cannot be read, and with nil when it can be read again. It may be
	// nil.
	Trouble func(err error)
}

const (
	defaultStallTimeout = time.Minute
	// minBackoff and maxBackoff bound the delay before the log is read again. It is shorter for a container that has
	// not started.
	minBackoff = 200 * time.Millisecond
	// wholeBackoff is the minimum delay after a complete stream: usually the container has ended, and its status shows
	// that a few seconds later.
	wholeBackoff        = 2 * time.Second
	maxBackoff          = 5 * time.Second
	maxBackoffOfPending = time.Second
	// lastTries is how often to read the log of an ended container in vain, when its node does not have it or has less
	// of it than before.
	lastTries = 4
	// minWhole is how often in a row the log must be read to the end of a stream, the last time after the container has
	// ended and without new output: an API server that loses its node also ends a stream as if it were complete.
	minWhole = 2
	// endPatience is how long a following stream may take to end by itself after the container has ended.
	endPatience = 2 * time.Second
	// firstReadBytes and maxReadBytes bound the size of a read. It starts small, because many quiet logs may be
	// followed at once for a long time.
	firstReadBytes, maxReadBytes = 2 << 10, 64 << 10
)

// Follow copies the log of a container from a position on. It returns when the container has ended and its whole log is
// copied. It retries failed reads until ctx ends. It returns ErrGone if the container has ended and the rest of its log
// is gone, and the error of Write if that fails.
func Follow(ctx context.Context, client kubernetes.Interface, p Pod, o Options) error {
	at, err := parsePosition(o.Position)
	if err != nil {
		return err
	}
	if o.StallTimeout <= 0 {
		o.StallTimeout = defaultStallTimeout
	}
	f := &follower{client: client, pod: p, o: o, buffer: make([]byte, firstReadBytes), copier: newCopier(o, at)}
	return f.run(ctx)
}

// follower is the state of one call of Follow.
type follower struct {
	client kubernetes.Interface
	pod    Pod
	o      Options
	copier copier
	buffer []byte
	// isTroubled reports whether the latest call of Trouble had an error.
	isTroubled bool
}

// writeError is an error of Options.Write.
type writeError struct{ error }

func (f *follower) run(ctx context.Context) error {
	backoff := minBackoff
	for vain, whole := 0, 0; ; {
		ended := f.hasEnded()
		err := f.copyStream(ctx, !ended)
		if whole++; err != nil || !f.copier.hasPassedPosition() {
			whole = 0
		}
		if w, ok := errors.AsType[writeError](err); ok {
			return w.error
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f.report(ctx, err)
		switch {
		case f.copier.hasNew:
			vain, backoff = 0, minBackoff
		case ended && errors.Is(err, errPodGone):
			return ErrGone
		case ended && (isRefusal(err) || err == nil && !f.copier.hasPassedPosition()):
			if vain++; vain >= lastTries {
				return f.giveUp(err)
			}
		case ended && whole >= minWhole:
			return f.copier.end()
		default:
			vain = 0
		}
		switch {
		case !ended && f.hasEnded() || ended && err == nil && f.copier.hasPassedPosition():
			continue // read the rest
		case errors.Is(err, errStalled):
			backoff = minBackoff
			continue
		}
		limit := maxBackoff
		if isRefusal(err) {
			limit = maxBackoffOfPending
		}
		pause := min(backoff, limit)
		if err == nil {
			pause = max(pause, wholeBackoff)
		}
		if err := f.wait(ctx, pause); err != nil {
			return err
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// giveUp returns the result of Follow for an ended container whose node repeatedly had no more of the log.
func (f *follower) giveUp(err error) error {
	switch {
	case err == nil: // the log has been rotated
		return f.copier.end()
	case hasNeverStarted(err):
		return nil
	}
	return fmt.Errorf("%w: %w", ErrGone, err)
}

// hasEnded reports whether the container has ended.
func (f *follower) hasEnded() bool {
	select {
	case <-f.o.Ended:
		return true
	default:
		return false
	}
}

// wait waits for d, or until the container or ctx ends.
func (f *follower) wait(ctx context.Context, d time.Duration) error {
	ended := f.o.Ended
	if f.hasEnded() {
		ended = nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ended:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// report calls Trouble when trouble begins or ends.
func (f *follower) report(ctx context.Context, err error) {
	isTrouble := err != nil && !errors.Is(err, errInterrupted) && ctx.Err() == nil
	if f.o.Trouble == nil || !isTrouble && !f.isTroubled {
		return
	}
	f.isTroubled = isTrouble
	if isTrouble {
		f.o.Trouble(err)
	} else {
		f.o.Trouble(nil)
	}
}

// copyStream copies one stream of the log, until it ends, stalls or fails. A following stream also stops after the
// container has ended. copyStream returns nil if the stream ended by itself.
func (f *follower) copyStream(ctx context.Context, follow bool) error {
	f.copier.begin()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(f.o.StallTimeout, func() { cancel(errStalled) })
	defer stall.Stop()
	if follow && f.o.Ended != nil {
		done := make(chan struct{})
		defer func() { cancel(nil); <-done }()
		go func() {
			defer close(done)
			select {
			case <-f.o.Ended:
				late := time.NewTimer(endPatience)
				defer late.Stop()
				select {
				case <-late.C:
					cancel(errEnded)
				case <-ctx.Done():
				}
			case <-ctx.Done():
			}
		}()
	}
	stream, err := f.open(ctx, follow)
	if err != nil && errors.Is(context.Cause(ctx), errStalled) {
		return fmt.Errorf("read the log of pod %s: no answer for %v", f.pod.Name, f.o.StallTimeout)
	}
	if err != nil {
		return interrupted(ctx, err)
	}
	defer func() { _ = stream.Close() }() // the stream was only read
	f.report(ctx, nil)
	for {
		stall.Reset(f.o.StallTimeout)
		n, err := stream.Read(f.buffer)
		stall.Stop() // a slow Write does not count as a stall
		if err := f.copier.add(f.buffer[:n], time.Now()); err != nil {
			return writeError{err}
		}
		if n == len(f.buffer) && n < maxReadBytes {
			f.buffer = make([]byte, min(2*n, maxReadBytes))
		}
		if err == io.EOF {
			return interrupted(ctx, nil) // an interrupted stream may end like this, too
		}
		if err != nil {
			return interrupted(ctx, err)
		}
	}
}
