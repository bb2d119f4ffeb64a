package activities

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
)

// Reopen returns the state from which a run goes on that has ended: what its
// status was at the end of the generation before. A large one is stored in parts,
// which LoadCarry returns. Where something had not ended when the run was ended
// from outside, it counts as cancelled.
func (c *Control) Reopen(ctx context.Context, req *v1.ReopenRequest) (*v1.RunCarry, error) {
	var status v1.StatusResponse
	if err := c.load(ctx, store.StatusKey(req.GetRunId(), req.GetGeneration()-1), &status); err != nil {
		return nil, err
	}
	run := status.GetRun()
	carry := &v1.RunCarry{
		CreatedAt: run.GetCreatedAt(), Context: run.GetContext(), Revision: status.GetRevision(),
		Cancelled: run.GetState() == "cancelled", Tasks: make(map[string]*v1.TaskCarry, len(run.GetTasks())),
	}
	for name, task := range run.GetTasks() {
		t := &v1.TaskCarry{Task: task, Claim: status.GetClaims()[name], Record: status.GetRecords()[name]}
		t.Task.Type, t.Task.DependsOn = "", nil // the definition has them
		if r := t.Task.GetResult(); r != nil && t.Record != "" {
			r.Stdout, r.Stderr, r.Output = "", "", nil
			r.StdoutTruncated, r.StderrTruncated = true, true
		}
		carry.Tasks[name] = t
	}
	if proto.Size(carry) <= maxResultBytes {
		return carry, nil
	}
	return c.SaveCarry(ctx, req.GetRunId(), req.GetGeneration(), carry)
}

// load reads a message from the store. That it is not there is for good.
func (c *Control) load(ctx context.Context, key string, m proto.Message) error {
	err := c.Store.GetMessage(ctx, key, m)
	if errors.Is(err, store.ErrNotFound) {
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf("%s is not in the store", key), "not_found", err)
	}
	return err
}
