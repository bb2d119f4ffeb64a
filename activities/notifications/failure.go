package notifications

import (
	"errors"
	"time"
)

// failure is why a receiver did not accept a message.
type failure struct {
	error
	permanent bool
	told      []string      // recipients that need no further try
	after     time.Duration // the receiver asks for no earlier try; 0 if it does not
}

// Unwrap returns the cause.
func (f *failure) Unwrap() error { return f.error }

func permanent(err error) error { return &failure{error: err, permanent: true} }

// IsPermanent reports whether every further try would fail as well.
func IsPermanent(err error) bool {
	f, ok := errors.AsType[*failure](err)
	return ok && f.permanent
}

// RetryAfter returns how long the receiver asks to wait before the next try, or 0 if it does not ask.
func RetryAfter(err error) time.Duration {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.after
	}
	return 0
}

// Told returns the recipients of a target that were told although the try as a whole has failed. Further tries leave them out.
func Told(err error) []string {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.told
	}
	return nil
}
