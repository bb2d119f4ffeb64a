package model

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfterIsSecondsADateOrMilliseconds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		after, afterMs string
		want           time.Duration
	}{
		{"", "", 0},
		{"7", "", 7 * time.Second},
		{"0.5", "", 500 * time.Millisecond},
		{"0", "", 0},
		{"Thu, 26 Nov 2026 12:00:30 GMT", "", 30 * time.Second},
		{"Thu, 26 Nov 2026 11:00:00 GMT", "", 0}, // in the past
		{"Thu, 26 Nov 2099 12:00:00 GMT", "", maxRetryAfter},
		{"", "1500", 1500 * time.Millisecond},
		{"2", "1500", 1500 * time.Millisecond}, // the more precise header wins
		{"2", "0", 0},
		{"2", "soon", 2 * time.Second},
		{"2", "-1", 2 * time.Second},
		{"2", "NaN", 2 * time.Second},
		{"soon", "", 0},
		{"-5", "", 0},
		{"NaN", "", 0},
		{"1e300", "", maxRetryAfter},
		{"Inf", "", maxRetryAfter},
	} {
		header := http.Header{}
		for name, value := range map[string]string{"Retry-After": test.after, "Retry-After-Ms": test.afterMs} {
			if value != "" {
				header.Set(name, value)
			}
		}
		if got := retryAfter(header, now); got != test.want {
			t.Errorf("%q and %q ms: %s, want %s", test.after, test.afterMs, got, test.want)
		}
	}
	if got := retryAfter(nil, now); got != 0 {
		t.Errorf("without headers: %s", got)
	}
}
