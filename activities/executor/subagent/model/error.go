package model

import "time"

// Kind classifies why a provider gave no reply.
type Kind string

// Kinds of errors.
const (
	RateLimited Kind = "rate limited" // the provider limits how much its client may send
	Overloaded  Kind = "overloaded"   // the provider is too busy for any client
	Unavailable Kind = "unavailable"  // the provider is unreachable, fails, or broke its reply
	Refused     Kind = "refused"      // the provider rejects the key, the model or the request
	Endless     Kind = "endless"      // the provider does not end its reply, whose tokens it charges each time
)

// Error is the failure of a request to a provider. Its text is meant for people: it names the provider and a remedy,
// quotes the provider's answer, and never contains the key.
type Error struct {
	Kind       Kind
	Status     int           // the HTTP status, or the one that a stream event corresponds to; 0 if there is none
	RetryAfter time.Duration // the wait that the provider asks for; 0 if it asks for none
	Err        error
}

// Error returns the explanation for people.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error behind the explanation.
func (e *Error) Unwrap() error { return e.Err }

// IsTemporary reports whether the same request may succeed later.
func (e *Error) IsTemporary() bool { return e.Kind != Refused && e.Kind != Endless }
