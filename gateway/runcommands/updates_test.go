package runcommands

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"connectrpc.com/connect"

	"switchyard/dev/testneeds"
	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// fakeIndex knows one run by a short name.
type fakeIndex map[string]string

func (i fakeIndex) Resolve(_ context.Context, text string) (string, error) {
	if id := i[text]; id != "" {
		return id, nil
	}
	return "", rpcerror.NotFound("no run %s", text)
}

// fakeUpdater records updates. Only the child of the run has instances.
type fakeUpdater struct{ sent []string }

func (u *fakeUpdater) Send(_ context.Context, id, name string, arg any) error {
	command, ok := arg.(*historyv1.TaskCommand)
	u.sent = append(u.sent, fmt.Sprint(id, " ", name, " ", command.GetTask(), " ", command.GetBy()))
	if ok && command.GetTask() == "each[7]" && id != "child" {
		return rpcerror.NotFound("no task")
	}
	return nil
}

func (*fakeUpdater) FindChild(_ context.Context, _, instance string) string {
	if instance == "each[7]" {
		return "child"
	}
	return ""
}

func (*fakeUpdater) ClosedError(context.Context, string) error { return nil }

// TestCommandsReachTheChildOfAnInstance sends commands for a run, for a task and for an instance that a child carries.
func TestCommandsReachTheChildOfAnInstance(t *testing.T) {
	t.Parallel()
	ctx := auth.With(t.Context(), &auth.Principal{Name: "ann"})
	updater := &fakeUpdater{}
	c := updates{index: fakeIndex{"last": "run-1"}, updater: updater}
	if res, err := c.PauseRun(ctx, connect.NewRequest(&v1.PauseRunRequest{Id: "last"})); err != nil || res.Msg.GetId() != "run-1" {
		t.Errorf("pause: %v, %v", res, err)
	}
	for _, task := range []string{"build", "each[7]"} {
		if res, err := c.KillTask(ctx, connect.NewRequest(&v1.KillTaskRequest{Id: "last", Task: task})); err != nil || res.Msg.GetId() != "run-1" {
			t.Errorf("kill %s: %v, %v", task, res, err)
		}
	}
	if _, err := c.HoldTask(ctx, connect.NewRequest(&v1.HoldTaskRequest{Id: "other", Task: "build"})); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("an unknown run: %v", err)
	}
	want := []string{"run-1 pause  ", "run-1 kill_task build ann", "run-1 kill_task each[7] ann", "child kill_task each[7] ann"}
	if !slices.Equal(updater.sent, want) {
		t.Errorf("sent %q, want %q", updater.sent, want)
	}
}
