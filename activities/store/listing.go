package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"gocloud.dev/gcerrors"
)

// IsOfOneValue reports whether an error stems from a single value, so that the others can be read: the value is not what was
// stored, or the folder or bucket refuses access to it.
func IsOfOneValue(err error) bool {
	if gcerrors.Code(err) == gcerrors.PermissionDenied {
		return true
	}
	for _, own := range []error{ErrUnreadable, fs.ErrPermission, syscall.ELOOP, syscall.EISDIR, syscall.EIO} {
		if errors.Is(err, own) {
			return true
		}
	}
	return false
}

// ReadEach calls read with each key below a prefix, in order, and skips values that have been deleted meanwhile. An error of a
// single value does not end the list: describe turns it into a warning, which may be empty.
func (s *Store) ReadEach(ctx context.Context, prefix string, read func(key string) error, describe func(key string, err error) string) (warnings []string, err error) {
	for key, err := range s.Keys(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		switch err := read(key); {
		case err == nil || errors.Is(err, ErrNotFound):
		case !IsOfOneValue(err):
			return nil, err
		default:
			if warning := describe(key, err); warning != "" {
				warnings = append(warnings, warning)
			}
		}
	}
	return warnings, nil
}

// Unreadable returns the error of a value that can be decoded and does not hold what its key promises.
func Unreadable(key, what string) error {
	return fmt.Errorf("read %s: %w: it holds no %s", key, ErrUnreadable, what)
}
