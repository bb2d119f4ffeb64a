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
	// uploadsAtOnce is how many values are uploaded in parallel.
	uploadsAtOnce = 16
	// uploadPatience is how many times longer an upload may take than a put, for which a caller waits.
	uploadPatience = 3
)

// upload moves values from the spool to the upstream store, oldest first. It returns when ctx ends, or when the spooler
// closes and the spool is empty.
func (s *spooler) upload(ctx context.Context) {
	defer close(s.ended)
	pause := firstPause
	for ctx.Err() == nil {
		n := uploadsAtOnce
		if s.away.Load() {
			n = 1 // to check whether the store is back
		}
		batch := s.spool.oldest(n)
		if len(batch) == 0 {
			select {
			case <-s.added:
			case <-s.closing:
				// Check once more for a value that was added before closing.
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

// uploadAll uploads values in parallel and reports whether all got through.
func (s *spooler) uploadAll(ctx context.Context, batch []*spooled) bool {
	var all errgroup.Group
	for _, v := range batch {
		all.Go(func() error { return s.uploadOne(ctx, v) })
	}
	return all.Wait() == nil
}

// uploadOne uploads a value and removes it from the spool. It also removes a value that the store does not want, because
// the key has one already or because the store refuses the value for good.
func (s *spooler) uploadOne(ctx context.Context, v *spooled) error {
	value, err := s.spool.read(v)
	switch {
	case errors.Is(err, ErrNotFound) && !s.spool.holds(v):
		return nil // the put that spooled it has stored it
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

// refuses reports whether the error of an upload is permanent for its value: the store says so, or it has failed the
// value Tries times while it responded.
func (s *spooler) refuses(ctx context.Context, v *spooled, err error) bool {
	switch {
	case connect.CodeOf(err) == connect.CodeInvalidArgument, connect.CodeOf(err) == connect.CodeAlreadyExists,
		connect.CodeOf(err) == connect.CodePermissionDenied, // the node has no grant for the task, or the run was deleted with its grants
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
