package exit

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestCodeOf(t *testing.T) {
	interrupted, interrupt := context.WithCancelCause(t.Context())
	interrupt(ErrInterrupted)
	for _, test := range []struct {
		ctx  context.Context
		err  error
		want int
	}{
		{t.Context(), nil, 0},
		{t.Context(), errors.New("x"), CodeSystem},
		{t.Context(), fmt.Errorf("more: %w", Usagef("x")), CodeUsage},
		{t.Context(), Silent(CodeNotDone), CodeNotDone},
		{interrupted, nil, 0},
		{interrupted, context.Canceled, CodeInterrupted},
		{interrupted, Silent(CodeNotDone), CodeNotDone},
	} {
		if got := CodeOf(test.ctx, test.err); got != test.want {
			t.Errorf("%v gives %d, want %d", test.err, got, test.want)
		}
	}
}
