package cli

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

func newRunsApprove(sys *system) *cobra.Command {
	var version int32
	var input inputFlags
	return runAction{
		use: "approve RUN [TASK]", short: "Approve a run or a task that waits for approval", least: 1, most: 2, reason: true,
		long: `Approves a waiting task of type approval; without TASK, approves the run itself, which
waits for an operator if the gateway was started with --approve-runs-of user. If a retry
has changed the run, name the version that you have seen with --definition-version.

If the task declares inputs, fill them in with --input. They become its output.`,
		flags: func(flags *pflag.FlagSet) {
			flags.Int32Var(&version, "definition-version", 0, "version of the run to approve, as runs get shows it; 0 is the run as submitted")
			input.add(flags, "approval")
		},
		send: func(ctx context.Context, a *client.Client, run, task, reason string) (string, error) {
			given, err := input.read(sys)
			if err != nil {
				return "", err
			}
			switch {
			case task == "" && given != nil:
				return "", exit.Usagef("--input is for a task of type approval: name the TASK")
			case task != "" && version != 0:
				return "", exit.Usagef("--definition-version is for the approval of a run: leave TASK out")
			}
			if task == "" {
				return idOf(ctx, a, a.Runs.ApproveRun, &v1.ApproveRunRequest{Id: run, Reason: reason, DefinitionVersion: version})
			}
			req := &v1.ApproveTaskRequest{Id: run, Task: task, Reason: reason}
			if req.Input, err = approvalInput(ctx, sys, a, given, run, task); err != nil {
				return "", err
			}
			return idOf(ctx, a, a.Runs.ApproveTask, req)
		},
		done:   func(run, task string) string { return ofRun(run, task) + " is approved" },
		remedy: waitingForApproval,
	}.command(sys)
}

// approvalInput returns what an approver fills in, with the types that the task declares. An approver who may not access the run does
// not know them.
func approvalInput(ctx context.Context, sys *system, a *client.Client, given *givenInput, run, task string) (*structpb.Struct, error) {
	if given == nil {
		return nil, nil
	}
	res, err := a.Runs.GetRunDefinition(ctx, connect.NewRequest(&v1.GetRunDefinitionRequest{Id: run}))
	if refused, ok := errors.AsType[*connect.Error](err); ok && refused.Code() == connect.CodeNotFound {
		return given.parse(sys, nil)
	}
	if err != nil {
		return nil, a.Failure(err)
	}
	if of, _, isInstance := names.ParseInstanceName(task); isInstance {
		task = of
	}
	return given.parse(sys, &v1.Definition{Inputs: definition.Approval(v1.TaskNamed(res.Msg.GetDefinition(), task)).GetInputs()})
}

// ofRun describes a task of a run, or the run if task is "".
func ofRun(run, task string) string {
	if task == "" {
		return "run " + run
	}
	return fmt.Sprintf("task %s of run %s", task, run)
}

// waitingForApproval explains how to find what can be approved or rejected.
func waitingForApproval(run, task string) string {
	if task == "" {
		return fmt.Sprintf("`switchyard runs get %s` shows whether the run waits, and tasks of type approval that do as paused; give TASK to decide on one", run)
	}
	return fmt.Sprintf("`switchyard runs get %s` shows the tasks that wait for approval as paused", run)
}
