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

// ErrGone says that the rest of a log is lost, since the pod is gone, or its node has removed the log.
var ErrGone = errors.New("the rest of the log is gone with its pod")

// Pod names a container of a pod.
type Pod struct {
	Namespace, Name string
	// UID is that of the pod: the log of another pod of the name is not read. It is not looked at if it is empty.
	UID       types.UID
	Container string
}

// Options say where a log is copied from and to.
type Options struct {
	// Position is what Mark was called with before the first byte that is wanted, or "" for the start of the log.
	Position string
	// Write takes what comes next of the log. It is not called from two goroutines at once, and must not keep p.
	Write func(p []byte) error
	// Mark, unless it is nil, is called before the first byte of a line, between two calls of Write, for one line in a
	// second or in 64 KiB at most. An empty Position stands for the first line.
	Mark func(position string)
	// Ended is closed when the status of the container says that it has ended; nil: it never does.
	Ended <-chan struct{}
	// StallTimeout is how long the log may be silent until another stream of it is opened; 60 s.
	StallTimeout time.Duration
	// Trouble, unless it is nil, is called with the reason why the log cannot be read now, and with nil when it can again.
	Trouble func(err error)
}

const (
	defaultStallTimeout = time.Minute
	// minBackoff and maxBackoff are how long it takes until the log is read again. A container that has not started is
	// asked for more often.
	minBackoff = 200 * time.Millisecond
	// wholeBackoff is the least of it after a whole stream: as a rule the container has ended, which its status shows up to
	// some seconds later.
	wholeBackoff        = 2 * time.Second
	maxBackoff          = 5 * time.Second
	maxBackoffOfPending = time.Second
	// lastTries is how often the log of a container that has ended is read in vain when its node does not have it, or has
	// less of it than before.
	lastTries = 4
	// minWhole is how often in a row the log of a container is read to the end of a stream, the last time after the container has
	// ended and without anything new: an API server that loses its node also ends a stream as if it was whole.
	minWhole = 2
	// endPatience is how long after the end of a container the stream that follows its log may take to end by itself.
	endPatience = 2 * time.Second
	// firstReadBytes and maxReadBytes are how much is read at once: little of a log that is quiet, since many may be read at
	// once for long.
	firstReadBytes, maxReadBytes = 2 << 10, 64 << 10
)

// Follow copies the log of a container from a position on, and returns when the container has ended and all of its log has
// been copied. It reads the log again for as long as that fails, until ctx ends. It returns ErrGone if the container has ended
// and the rest of its log is gone, and the error of Write.
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

// follower is one call of Follow.
type follower struct {
	client kubernetes.Interface
	pod    Pod
	o      Options
	copier copier
	buffer []byte
	// isTroubled says that Trouble was called with an error last.
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
			continue // to read the rest
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

// giveUp returns the result of Follow for a container that has ended, after its node had no more of the log several times.
func (f *follower) giveUp(err error) error {
	switch {
	case err == nil: // it has been rotated
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

// wait returns when some time has passed, or the container ends.
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

// report tells of trouble, or that it is over.
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

// copyStream copies what a stream of the log has, until it ends, stalls or fails, or, if it is one that follows the log, the
// container has ended. It returns nil when the stream has ended.
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
		return fmt.Errorf("read the log of pod %s: no answer has come for %v", f.pod.Name, f.o.StallTimeout)
	}
	if err != nil {
		return interrupted(ctx, err)
	}
	defer func() { _ = stream.Close() }() // it has only been read
	f.report(ctx, nil)
	for {
		stall.Reset(f.o.StallTimeout)
		n, err := stream.Read(f.buffer)
		stall.Stop() // a slow Write is no stall
		if err := f.copier.add(f.buffer[:n], time.Now()); err != nil {
			return writeError{err}
		}
		if n == len(f.buffer) && n < maxReadBytes {
			f.buffer = make([]byte, min(2*n, maxReadBytes))
		}
		if err == io.EOF {
			return interrupted(ctx, nil) // one that is interrupted may end like this, too
		}
		if err != nil {
			return interrupted(ctx, err)
		}
	}
}
