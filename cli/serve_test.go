package cli

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"switchyard/cli/exit"
)

// TestServedResult checks that a command which a signal has ended succeeds although a part did not stop in time, and says so.
func TestServedResult(t *testing.T) {
	interrupted, interrupt := context.WithCancelCause(t.Context())
	interrupt(exit.ErrInterrupted)
	failed, slow := errors.New("the node has lost its name"), errors.New("stop spool: it has not stopped within 5s")
	for _, test := range []struct {
		ctx       context.Context
		err, stop error
		code      int
		logged    bool
	}{
		{interrupted, nil, nil, exit.CodeDone, false},
		{interrupted, nil, slow, exit.CodeDone, true},
		{t.Context(), failed, nil, exit.CodeSystem, false},
		{t.Context(), failed, slow, exit.CodeSystem, false},
		{t.Context(), nil, slow, exit.CodeSystem, false},
	} {
		var out strings.Builder
		err := servedResult(test.ctx, slog.New(slog.NewTextHandler(&out, nil)), test.err, test.stop)
		if code := exit.CodeOf(test.ctx, err); code != test.code {
			t.Errorf("%v, then %v: code %d, want %d", test.err, test.stop, code, test.code)
		}
		if logged := strings.Contains(out.String(), slow.Error()); logged != test.logged {
			t.Errorf("%v, then %v: logged %q", test.err, test.stop, out.String())
		}
	}
}

// TestSecondSignalFiresOnce checks that the action of the second signal runs only once.
func TestSecondSignalFiresOnce(t *testing.T) {
	var h secondSignal
	if h.fire() {
		t.Error("there was something to do")
	}
	done := 0
	h.set(func() { done++ })
	if !h.fire() || h.fire() || done != 1 {
		t.Errorf("done %d times", done)
	}
}
