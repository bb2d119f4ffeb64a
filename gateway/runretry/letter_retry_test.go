package runretry

import (
	"context"
	"errors"
	"slices"
	"testing"

	"connectrpc.com/connect"
	"go.temporal.io/sdk/temporal"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
)

// fakeUpdater answers updates about tasks with their errors. The child of the run has the instance each[7].
type fakeUpdater map[string]error

func (u fakeUpdater) SendOnce(_ context.Context, id, _ string, arg any) error {
	task := arg.(*historyv1.RetryTaskRequest).GetTask()
	if task == "each[7]" && id == "child" {
		return nil
	}
	return u[task]
}

func (fakeUpdater) FindChild(_ context.Context, _, instance string) string {
	if instance == "each[7]" {
		return "child"
	}
	return ""
}

// TestRequeueSkipsRefusedTasks puts tasks of an open run back, some of which the run refuses.
func TestRequeueSkipsRefusedTasks(t *testing.T) {
	t.Parallel()
	refusal := func(kind string) error { return temporal.NewApplicationError("refused", kind) }
	r := letterRetries{updater: fakeUpdater{
		"busy": refusal("other"), "each[7]": refusal(names.UnknownTaskError), "unknown": refusal(names.UnknownTaskError),
		"late": refusal(names.RunEndedError), "lost": errors.New("the server is down"),
	}}
	for what, test := range map[string]struct {
		tasks []string
		named bool
		done  []string
		code  connect.Code // 0 for success
	}{
		"all accepted":      {[]string{"a", "b"}, false, []string{"a", "b"}, 0},
		"one refused":       {[]string{"a", "busy", "b"}, false, []string{"a", "b"}, 0},
		"all refused":       {[]string{"busy"}, false, nil, connect.CodeAborted},
		"a refused name":    {[]string{"busy"}, true, nil, connect.CodeAborted},
		"a child's":         {[]string{"each[7]"}, true, []string{"each[7]"}, 0},
		"an unknown one":    {[]string{"a", "unknown"}, false, []string{"a"}, connect.CodeNotFound},
		"the run has ended": {[]string{"a", "late", "b"}, false, []string{"a"}, connect.CodeNotFound},
		"no answer":         {[]string{"lost", "a"}, false, nil, connect.CodeUnknown},
	} {
		done, err := r.requeue(t.Context(), "run", test.tasks, test.named)
		if !slices.Equal(done, test.done) || (err == nil) != (test.code == 0) || err != nil && connect.CodeOf(err) != test.code {
			t.Errorf("%s: %q, %v", what, done, err)
		}
	}
}
