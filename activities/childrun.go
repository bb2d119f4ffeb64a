package activities

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/encoding/protojson"

	"switchyard/activities/library"
	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

const (
	// maxChildDepth is how many runs a run may be inside of. A workflow that starts itself ends there.
	maxChildDepth = 10
	// maxChildBytes is what the input of a child run may take, encoded; Temporal takes 2 MB.
	maxChildBytes = 1_600_000
)

// ChildRuns has the activities of tasks of type "run". It is safe for concurrent use.
type ChildRuns struct {
	Client  client.Client
	Library *library.Library
	Store   *store.Store
}

// Prepare returns the run that a task is to start, checked as one that is
// submitted. What would be wrong another time too is an error that is not retried.
func (c *ChildRuns) Prepare(ctx context.Context, req *v1.ChildRunRequest) (*v1.ChildRunResponse, error) {
	if req.GetDepth() > maxChildDepth {
		return nil, refused(fmt.Errorf("runs are nested more than %d deep", maxChildDepth))
	}
	var spec v1.RunSpec
	text, err := protojson.Marshal(req.GetSpec())
	if err == nil {
		err = protojson.Unmarshal(text, &spec)
	}
	if err != nil {
		return nil, refused(fmt.Errorf("the spec is no RunSpec: %w", err))
	}
	def, err := c.definition(ctx, &spec)
	if err != nil {
		return nil, err
	}
	in := &v1.RunInput{
		Definition: def, Options: req.GetOptions(), ParentRun: req.GetRunId(), ParentTask: req.GetTask(), Depth: req.GetDepth(),
	}
	if in.Input, err = definition.Input(def, spec.GetInput()); err != nil {
		return nil, refused(fmt.Errorf("input of workflow %s: %w", def.GetName(), err))
	}
	if in.References, err = definition.References(def); err != nil {
		return nil, refused(fmt.Errorf("workflow %s: %w", def.GetName(), err))
	}
	if err := definition.Pack(in); err != nil {
		return nil, refused(fmt.Errorf("workflow %s: %w", def.GetName(), err))
	}
	if text, err := protojson.Marshal(in); err != nil || len(text) > maxChildBytes {
		return nil, refused(errors.Join(fmt.Errorf("definition and input of workflow %s take %d bytes; a run may take %d", def.GetName(), len(text), maxChildBytes), err))
	}
	key := fmt.Sprintf("child\x00%s\x00%d\x00%s\x00%d", req.GetRunId(), req.GetGeneration(), req.GetTask(), req.GetClaim())
	return &v1.ChildRunResponse{Id: names.KeyedRunID(def.GetName(), key), Workflow: def.GetName(), Input: in}, nil
}

// definition is the one that a spec holds or names.
func (c *ChildRuns) definition(ctx context.Context, spec *v1.RunSpec) (*v1.Definition, error) {
	if spec.GetDefinition() != nil {
		def, err := definition.FromStruct(spec.GetDefinition())
		if err != nil {
			return nil, refused(fmt.Errorf("the definition of the child run: %w", err))
		}
		return def, nil
	}
	stored, err := c.Library.Get(ctx, spec.GetWorkflow())
	if errors.Is(err, library.ErrUnknown) {
		return nil, refused(fmt.Errorf("no definition is stored under the name %s", strconv.Quote(spec.GetWorkflow())))
	}
	if err != nil {
		return nil, err
	}
	return stored.Definition, nil
}

// refused is the error of a child run that there cannot be. A local activity that
// ends with it is not repeated.
func refused(err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), names.ChildRunError, nil)
}

// End returns what a completed child run has left as the answer of an attempt: its
// context is the output. What is too large to travel is stored as the result record.
func (c *ChildRuns) End(ctx context.Context, req *v1.ChildRunEndRequest) (*v1.ExecuteResponse, error) {
	var status v1.StatusResponse
	if err := c.Store.GetMessage(ctx, store.StatusKey(req.GetChild(), req.GetChildGeneration()), &status); err != nil {
		return nil, fmt.Errorf("read the status of run %s: %w", req.GetChild(), err)
	}
	run := status.GetRun()
	res := &v1.ExecuteResponse{
		State: "completed", Result: &v1.TaskResult{Output: run.GetContext()},
		StartedAt: run.GetCreatedAt(), CompletedAt: run.GetCompletedAt(),
	}
	if fits(res, int(req.GetInlineLimit())) {
		return res, nil
	}
	key := store.ResultKey(req.GetRunId(), req.GetGeneration(), req.GetTask(), req.GetAttempt())
	if err := c.Store.PutMessage(ctx, key, res); err != nil {
		return nil, err
	}
	return cut(res, key, int(req.GetInlineLimit())), nil
}
