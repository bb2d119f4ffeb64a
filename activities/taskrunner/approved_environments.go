package taskrunner

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/environments"
	"switchyard/activities/executor"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
)

// checkApprovedEnvironments returns the failure of an attempt with an environment that the approval of its run does not cover,
// because the environment was made later. spec has its expressions replaced. An error means that the environment cannot be read now.
func (n *Node) checkApprovedEnvironments(ctx context.Context, req *historyv1.ExecuteRequest, spec *structpb.Struct) (*historyv1.ExecuteResponse, error) {
	if req.GetApprovedEnvironments() == nil {
		return nil, nil
	}
	for _, name := range definition.EnvironmentsOf(req.GetType(), spec) {
		e, err := environments.New(n.Store).Find(ctx, name)
		switch approved := req.GetApprovedEnvironments().GetDigests()[name]; {
		case errors.Is(err, executor.ErrNoEnvironment): // the executor says so
		case err != nil:
			return nil, err
		case approved == "":
			return notApproved(req, "does not cover environment %s, which the definition did not name, or which did not exist, when the run was submitted", name), nil
		case approved != e.GetDigest():
			return notApproved(req, "covers another version of environment %s, which was made anew since", name), nil
		}
	}
	return nil, nil
}

func notApproved(req *historyv1.ExecuteRequest, format string, args ...any) *historyv1.ExecuteResponse {
	return &historyv1.ExecuteResponse{
		State: v1.TaskFailed, Reason: v1.ReasonBadSpec, Result: &v1.TaskResult{ExitCode: -1},
		Error: "the approval of the run " + fmt.Sprintf(format, args...) + fmt.Sprintf("; submit the run again, as with `switchyard runs rerun %s`", req.GetRunId()),
	}
}
