package model

import (
	"net/http"
	"strconv"
	"time"
)

// maxRetryAfter bounds the wait that a provider may ask for.
const maxRetryAfter = 24 * time.Hour

// retryAfter returns the wait that a provider asks for, or 0. The header Retry-After-Ms takes precedence, because it is
// more precise than Retry-After, which is a number of seconds or a date.
func retryAfter(header http.Header, now time.Time) time.Duration {
	for _, source := range []struct {
		name string
		unit time.Duration
	}{{"Retry-After-Ms", time.Millisecond}, {"Retry-After", time.Second}} {
		value := header.Get(source.name)
		if number, err := strconv.ParseFloat(value, 64); err == nil && number >= 0 { // not for NaN
			return time.Duration(min(number*float64(source.unit), float64(maxRetryAfter)))
		}
		if date, err := http.ParseTime(value); err == nil {
			return min(max(date.Sub(now), 0), maxRetryAfter)
		}
	}
	return 0
}
