package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"go.temporal.io/api/serviceerror"

	"switchyard/workers"
)

// TestWorkerWaitsForTemporal checks that a worker waits for a server that is away, says so once, and does not wait for anything else.
func TestWorkerWaitsForTemporal(t *testing.T) {
	t.Parallel()
	away := fmt.Errorf("connect: %w", serviceerror.NewUnavailable("refused"))
	missing := errors.New("there is no namespace")
	for name, test := range map[string]struct {
		control bool
		answers []error
		want    error
		said    int
	}{
		"there":           {false, []error{nil}, nil, 0},
		"away for a time": {false, []error{away, fmt.Errorf("connect: %w", context.DeadlineExceeded), away, away, nil}, nil, 3},
		"no namespace":    {false, []error{away, missing}, missing, 1},
		"a gateway":       {true, []error{away}, away, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out strings.Builder
				cfg := Config{Control: test.control, Logger: slog.New(slog.NewTextHandler(&out, nil))}
				_, err := connect(t.Context(), cfg, func() (*workers.Connection, error) {
					answer := test.answers[0]
					test.answers = test.answers[1:]
					return nil, answer
				})
				if err != test.want || len(test.answers) > 0 || strings.Count(out.String(), "the worker waits for it") != test.said {
					t.Errorf("error %v, %d answers left, log %s", err, len(test.answers), out.String())
				}
			})
		})
	}
	t.Run("until it is stopped", func(t *testing.T) {
		ctx, stop := context.WithCancelCause(t.Context())
		_, err := connect(ctx, Config{Logger: slog.New(slog.DiscardHandler)}, func() (*workers.Connection, error) {
			stop(errors.New("stopped"))
			return nil, away
		})
		if err != away {
			t.Errorf("error %v", err)
		}
	})
}
