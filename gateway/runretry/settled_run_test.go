package runretry

import (
	"context"
	"testing"

	"connectrpc.com/connect"

	"switchyard/dev/testneeds"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runview"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// countingReader counts the reads of a run.
type countingReader int

func (r *countingReader) ReadSettled(_ context.Context, id string) (*runview.Description, *runview.View, error) {
	*r++
	return nil, runview.NewView(id), nil
}

// TestRetryFollowsAChangingRun tries again with the newest state of a run that has ended or was reopened meanwhile.
func TestRetryFollowsAChangingRun(t *testing.T) {
	t.Parallel()
	changed := connect.NewError(connect.CodeAlreadyExists, context.Canceled)
	for what, test := range map[string]struct {
		errs  []error // of the tries
		final bool
		code  connect.Code // 0 for success
		reads int
	}{
		"success":         {[]error{nil}, false, 0, 1},
		"a change":        {[]error{changed, nil}, false, 0, 2},
		"a final refusal": {[]error{changed}, true, connect.CodeAlreadyExists, 1},
		"another error":   {[]error{rpcerror.WrongState("no")}, false, connect.CodeAborted, 1},
	} {
		var reader countingReader
		err := retryWhileChanging(t.Context(), &reader, "run", func(*runview.Description, *runview.View) (string, error) {
			if test.final {
				return "", test.errs[reader-1]
			}
			return "do it", test.errs[reader-1]
		})
		if (err == nil) != (test.code == 0) || err != nil && connect.CodeOf(err) != test.code || int(reader) != test.reads {
			t.Errorf("%s: %v after %d reads", what, err, reader)
		}
	}
}
