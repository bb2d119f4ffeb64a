package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// An expression that exceeds its time on a stalled machine is evaluated again. It fails only after several tries.
func TestExpressionsOfAStalledMachineAreEvaluatedAgain(t *testing.T) {
	t.Parallel()
	late := fmt.Errorf("evaluate: %w", context.DeadlineExceeded)
	wrong := errors.New("no such key")
	for name, test := range map[string]struct {
		answers []error // the last one repeats
		calls   int
		want    error
	}{
		"one stall":    {[]error{late, nil}, 2, nil},
		"only stalls":  {[]error{late}, conditionTries, late},
		"other errors": {[]error{wrong, nil}, 1, wrong},
	} {
		calls := 0
		err := inTime(t.Context(), func(limited context.Context) error {
			if _, ok := limited.Deadline(); !ok {
				t.Errorf("%s: the time is not limited", name)
			}
			calls++
			return test.answers[min(calls, len(test.answers))-1]
		})
		if calls != test.calls || !errors.Is(err, test.want) {
			t.Errorf("%s: %d calls, %v; want %d, %v", name, calls, err, test.calls, test.want)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	calls := 0
	if err := inTime(over, func(context.Context) error { calls++; return late }); calls != 1 || err == nil {
		t.Errorf("after a cancellation: %d calls, %v; want 1 and an error", calls, err)
	}
}
