package store

import (
	"context"
	"errors"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"
)

const (
	// uploadsAtOnce is how many values go upstream side by side.
	uploadsAtOnce = 16
	// uploadPatience is how much longer than a put, which a caller waits for, an
	// upload may take.
	uploadPatience = 3
)

// upload takes values out of the spool, oldest first, and stores them upstream,
// until ctx ends or the spool is empty and the spooler closes.
func (s *spooler) upload(ctx context.Context) {
	defer close(s.ended)
	pause := firstPause
	for ctx.Err() == nil {
		n := uploadsAtOnce
		if s.away.Load() {
			n = 1 // to see whether it is back
		}
		batch := s.spool.oldest(n)
		if len(batch) == 0 {
			select {
			case <-s.added:
			case <-s.closing:
				// What had been added before has been seen by oldest, or is now.
				if len(s.spool.oldest(1)) == 0 {
					return
				}
			case <-ctx.Done():
			}
			continue
		}
		if s.uploadAll(ctx, batch) {
			pause = firstPause
			continue
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, longestPause)
	}
}

// uploadAll stores values side by side and reports whether all got through.
func (s *spooler) uploadAll(ctx context.Context, batch []*spooled) bool {
	var all errgroup.Group
	for _, v := range batch {
		all.Go(func() error { return s.uploadOne(ctx, v) })
	}
	return all.Wait() == nil
}

// uploadOne stores a value and takes it out of the spool. A value that is not
// wanted upstream, because there is one already or because it is refused for
// good, is taken out too.
func (s *spooler) uploadOne(ctx context.Context, v *spooled) error {
	value, err := s.spool.read(v)
	switch {
	case errors.Is(err, ErrNotFound) && !s.spool.holds(v):
		return nil // whoever put it has stored it
	case errors.Is(err, ErrNotFound), errors.Is(err, errTorn):
		s.log.Error("a value in the spool is lost", "key", v.key, "error", err)
	case err != nil:
		s.log.Error("a value in the spool cannot be read now", "key", v.key, "error", err)
		return err
	default:
		ctx, cancel := context.WithTimeout(ctx, uploadPatience*tryTimeout(len(value)))
		defer cancel()
		_, err := s.storeOnce(ctx, v.key, value, v.ifAbsent)
		switch {
		case err == nil:
			s.found()
		case s.refuses(ctx, v, err):
			s.log.Error("the store refuses a value, which is dropped", "key", v.key, "error", err)
		default:
			s.lost(err)
			return err
		}
	}
	if err := s.spool.remove(v); err != nil {
		s.log.Error("a value that is stored stays in the spool", "error", err)
	}
	return nil
}

// refuses reports whether the error of an upload concerns that value for good: the store says so, or it has
// failed the value Tries times and takes others meanwhile.
func (s *spooler) refuses(ctx context.Context, v *spooled, err error) bool {
	switch {
	case connect.CodeOf(err) == connect.CodeInvalidArgument, connect.CodeOf(err) == connect.CodeAlreadyExists,
		connect.CodeOf(err) == connect.CodePermissionDenied, // the node was not given the task, and the store has not kept its run
		errors.Is(err, ErrLowSpace), errors.Is(err, ErrLogQuota), errors.Is(err, errTooLarge):
		return true
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT): // there may be room for a small value
		return false
	case s.probe(ctx, ProbeRun) != nil:
		return false
	}
	v.failures++
	return v.failures >= Tries
}
