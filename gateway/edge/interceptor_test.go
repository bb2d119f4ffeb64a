package edge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"connectrpc.com/connect"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

func TestCallsThatFailForAFaultOfTemporalNameIt(t *testing.T) {
	t.Parallel()
	full := errors.New("the disk is full")
	for name, test := range map[string]struct {
		fault, err error
		want       string
	}{
		"no fault":         {nil, context.DeadlineExceeded, "deadline_exceeded: context deadline exceeded"},
		"no answer":        {full, fmt.Errorf("start a run: %w", context.DeadlineExceeded), "unavailable: the disk is full (start a run: context deadline exceeded)"},
		"another error":    {full, rpcerror.NoRun("x"), `not_found: there is no run "x"`},
		"without an error": {full, nil, ""},
	} {
		e := NewInterceptor(slog.New(slog.DiscardHandler), NewBounds(Limits{}, 1), func(context.Context) error { return test.fault })
		_, err := e.WrapUnary(func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) {
			return connect.NewResponse(&v1.GetRunResponse{}), test.err
		})(t.Context(), connect.NewRequest(&v1.GetRunRequest{}))
		if said := fmt.Sprint(err); said != test.want && (err != nil || test.want != "") {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// TestCallThatItsClientEndedNamesNoFault checks that a client gets what it asked for with its own deadline or cancellation, even if
// that comes while the gateway looks for a fault.
func TestCallThatItsClientEndedNamesNoFault(t *testing.T) {
	t.Parallel()
	for _, during := range []string{"call", "look"} {
		ctx, cancel := context.WithCancel(t.Context())
		end := func(when string) {
			if when == during {
				cancel()
			}
		}
		e := NewInterceptor(slog.New(slog.DiscardHandler), NewBounds(Limits{}, 1), func(context.Context) error {
			end("look")
			return errors.New("the disk is full")
		})
		_, err := e.WrapUnary(func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) {
			end("call")
			return nil, context.DeadlineExceeded
		})(ctx, connect.NewRequest(&v1.GetRunRequest{}))
		if connect.CodeOf(err) != connect.CodeDeadlineExceeded {
			t.Errorf("ended during the %s: %v", during, err)
		}
	}
}
