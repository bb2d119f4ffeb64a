package taskrunner

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// received returns an error as a workflow receives it.
func received(err error) *temporal.ApplicationError {
	converter := temporal.GetDefaultFailureConverter()
	app, _ := errors.AsType[*temporal.ApplicationError](converter.FailureToError(converter.ErrorToFailure(err)))
	return app
}

// failedAnswer returns the answer in the details of an error, or one of state "error" if there is none.
func failedAnswer(err error) *historyv1.ExecuteResponse {
	res := &historyv1.ExecuteResponse{}
	if app := received(err); app.Type() != names.AttemptFailedError || app.Details(res) != nil {
		return &historyv1.ExecuteResponse{State: "error", Error: err.Error()}
	}
	return res
}

func TestFailedAttemptFailsItsActivity(t *testing.T) {
	t.Parallel()
	member := func(index int32, state, text string) *historyv1.MemberResult {
		return &historyv1.MemberResult{Index: index, State: state, Error: text}
	}
	long := strings.Repeat("é", 2000)
	for name, test := range map[string]struct {
		res     *historyv1.ExecuteResponse
		message string // of the error, or "" if there is no error
	}{
		"completed": {res: &historyv1.ExecuteResponse{State: "completed"}},
		"moved":     {res: &historyv1.ExecuteResponse{State: "moved", Reason: "lease_lost", Error: "x"}},
		"detached":  {res: &historyv1.ExecuteResponse{State: "detached"}},
		"cancelled": {res: &historyv1.ExecuteResponse{State: "cancelled", Reason: "cancelled"}},
		"failed": {
			res:     &historyv1.ExecuteResponse{State: "failed", Error: "exit code 3", Result: &v1.TaskResult{ExitCode: 3, Stderr: "boom"}},
			message: "exit code 3",
		},
		"out of memory":  {res: &historyv1.ExecuteResponse{State: "killed_oom", Reason: "oom"}, message: "oom"},
		"lost":           {res: &historyv1.ExecuteResponse{State: "lost", Error: "gone"}, message: "gone"},
		"long":           {res: &historyv1.ExecuteResponse{State: "failed", Error: "x" + long}, message: "x" + long[:maxFailureMessage-2]},
		"whole batch":    {res: &historyv1.ExecuteResponse{State: "completed", Batch: []*historyv1.MemberResult{member(4, "", ""), member(5, "completed", "")}}},
		"one of a batch": {res: &historyv1.ExecuteResponse{State: "completed", Batch: []*historyv1.MemberResult{member(4, "", ""), member(5, "failed", "exit code 1")}}, message: "instance 5: exit code 1"},
		"two of a batch": {
			res:     &historyv1.ExecuteResponse{State: "moved", Batch: []*historyv1.MemberResult{member(4, "failed", "a"), member(5, "killed_oom", "b")}},
			message: "2 instances failed; the first, instance 4: a",
		},
		// The worker's converter refuses the first answer and cannot encode the second.
		"too large": {res: &historyv1.ExecuteResponse{State: "failed", Error: strings.Repeat("x", maxFailureDetails)}},
		"no UTF-8":  {res: &historyv1.ExecuteResponse{State: "failed", Error: "\xff"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := activityEnd(test.res, nil)
			if test.message == "" {
				if res != test.res || err != nil {
					t.Fatalf("%v, %v", res, err)
				}
				return
			}
			if app := received(err); res != nil || app.Message() != test.message || !app.NonRetryable() || app.Category() != temporal.ApplicationErrorCategoryBenign {
				t.Errorf("%v, %v", res, err)
			}
			if got := failedAnswer(err); !proto.Equal(got, test.res) {
				t.Errorf("details %v", got)
			}
			if !utf8.ValidString(err.Error()) {
				t.Errorf("message %q", err)
			}
		})
	}
	fault := errors.New("the disk is full")
	if res, err := activityEnd(nil, fault); res != nil || err != fault {
		t.Errorf("a fault of the node: %v, %v", res, err)
	}
}
