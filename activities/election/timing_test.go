package election

import (
	"strings"
	"testing"
	"time"
)

// TestLeadershipEndsBeforeTheServerReplacesTheLeader checks that the durations follow from the server's time-out, whatever this
// process is set to.
func TestLeadershipEndsBeforeTheServerReplacesTheLeader(t *testing.T) {
	t.Parallel()
	if got, want := termsOf(DefaultLease, DefaultRenewal), (terms{4 * time.Second, time.Second, 1500 * time.Millisecond}); got != want {
		t.Errorf("by default %+v, want %+v", got, want)
	}
	for _, timeout := range []time.Duration{MinLease, DefaultLease, MaxLease} {
		for _, renewal := range []time.Duration{MinRenewal, DefaultRenewal, MaxLease / renewalsPerLease} {
			if got := termsOf(timeout, renewal); got.lease >= timeout || 2*got.renewal >= got.lease || got.renewal > renewal || got.beat >= got.lease {
				t.Errorf("with %v and %v: %+v", timeout, renewal, got)
			}
		}
	}
}

func TestTimingIsValidated(t *testing.T) {
	t.Parallel()
	for _, good := range []Timing{{}, {Lease: 3 * time.Second}, {Lease: MaxLease, Renewal: MaxLease / renewalsPerLease}, {Renewal: MinRenewal}} {
		if err := good.Validate(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for want, bad := range map[string]Timing{
		"2s to 1m0s": {Lease: time.Second}, "it must be 2s": {Lease: time.Hour}, "at least 100ms": {Renewal: time.Millisecond},
		"lease of 5s every 5s": {Renewal: 5 * time.Second}, "at most a third": {Lease: 2 * time.Second},
	} {
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; it should say %q", bad, err, want)
		}
	}
}
