package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/time/rate"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/library"
	"switchyard/activities/results"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

const (
	// maxChildDepth bounds how deep runs are nested. It stops a workflow that starts itself.
	maxChildDepth = 10
	// maxChildBytes bounds the encoded input of a child run. Temporal accepts 2 MB.
	maxChildBytes = 1_600_000
)

// Children has the activities for the child workflows of a run. It is safe for concurrent use.
type Children struct {
	Client  client.Client
	Library *library.Library
	Store   *store.Store
	// Defaults are the run settings that apply if a child run does not specify them.
	Defaults definition.RunDefaults

	looks *rate.Limiter
}

// NewChildren returns the activities for child workflows.
func NewChildren(c client.Client, library *library.Library, store *store.Store, defaults definition.RunDefaults) *Children {
	return &Children{Client: c, Library: library, Store: store, Defaults: defaults, looks: rate.NewLimiter(looksPerSecond, looksPerSecond)}
}

// Prepare returns the inputs with which child workflows start: checked inputs for runs, and those of parts. Large inputs
// are returned by reference. If a child cannot be started, its answer says why. An error means that the caller may repeat
// the request.
func (c *Children) Prepare(ctx context.Context, req *historyv1.PrepareRequest) (*historyv1.PrepareResponse, error) {
	res := &historyv1.PrepareResponse{}
	for _, child := range req.GetChildren() {
		prepared, err := c.prepare(ctx, child)
		if refusal, ok := errors.AsType[*refusal](err); ok {
			prepared, err = &historyv1.PreparedChild{Error: refusal.Error()}, nil
		}
		if err != nil {
			return nil, err
		}
		res.Children = append(res.Children, prepared)
	}
	return res, nil
}

func (c *Children) prepare(ctx context.Context, req *historyv1.ChildRequest) (*historyv1.PreparedChild, error) {
	prepared := &historyv1.PreparedChild{Id: req.GetId(), Input: req.GetInput()}
	if req.GetRun() != nil {
		var err error
		if prepared, err = c.childRun(ctx, req.GetRun()); err != nil {
			return nil, err
		}
	}
	text, err := protojson.Marshal(prepared.GetInput())
	if err != nil {
		return nil, refused(fmt.Errorf("the input of %s is not JSON: %w", prepared.GetId(), err))
	}
	if len(text) <= definition.MaxInlineInput {
		return prepared, nil
	}
	home := names.Home(req.GetInput().GetPartition().GetRunId(), req.GetInput().GetPartition().GetChain())
	if req.GetRun() != nil {
		home = names.Home(req.GetRun().GetRunId(), req.GetRun().GetChain())
	}
	prepared.Input, err = saveInput(ctx, c.Store, home, prepared.GetInput())
	return prepared, err
}

// saveInput stores the input of a workflow under a home and returns it by reference.
func saveInput(ctx context.Context, st *store.Store, home string, in *historyv1.RunInput) (*historyv1.RunInput, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(in)
	if err != nil {
		return nil, refused(fmt.Errorf("encode the input of a run of %s: %w", home, err))
	}
	key := storekey.Input(home, storekey.Digest(data))
	if err := st.PutMessage(ctx, key, in); err != nil {
		return nil, err
	}
	return &historyv1.RunInput{Stored: key, Generation: in.GetGeneration()}, nil
}

// SaveInput stores the input of a run for the next execution of its workflow, and returns it by reference.
func (c *Control) SaveInput(ctx context.Context, home string, in *historyv1.RunInput) (*historyv1.RunInput, error) {
	return saveInput(ctx, c.Store, home, in)
}

// LoadInput returns a stored input of a workflow, packed if it is large.
func (c *Control) LoadInput(ctx context.Context, key string) (*historyv1.RunInput, error) {
	var in historyv1.RunInput
	if err := loadOfRun(ctx, c.Store, key, &in); err != nil {
		return nil, err
	}
	return &in, definition.Pack(&in)
}

// childRun returns the id and the input of the run that a task starts.
func (c *Children) childRun(ctx context.Context, req *historyv1.ChildRunRequest) (*historyv1.PreparedChild, error) {
	if req.GetDepth() > maxChildDepth {
		return nil, refused(fmt.Errorf("runs are nested more than %d deep", maxChildDepth))
	}
	var spec v1.RunSpec
	text, err := protojson.Marshal(req.GetSpec())
	if err == nil {
		err = protojson.Unmarshal(text, &spec)
	}
	if err != nil {
		return nil, refused(fmt.Errorf("the spec is not a RunSpec: %w", err))
	}
	def, err := c.definition(ctx, &spec, req.GetWorkflows())
	if err != nil {
		return nil, err
	}
	c.Defaults.FillDefinition(def)
	in := &historyv1.RunInput{
		Definition: def, Options: c.Defaults.FillOptions(req.GetOptions()), ParentRun: req.GetRunId(), ParentTask: req.GetTask(), Depth: req.GetDepth(),
		ParentFirst: req.GetParentFirst(), By: req.GetBy(), Batch: req.GetBatch(), ByRole: req.GetByRole(), SignedDecisions: req.GetSignedDecisions(),
		Workflows: req.GetWorkflows(), HeldLocks: req.GetHeldLocks(),
	}
	if in.Input, err = definition.Input(def, spec.GetInput()); err != nil {
		return nil, refused(fmt.Errorf("input of workflow %s: %w", def.GetName(), err))
	}
	if in.References, err = definition.References(def); err != nil {
		return nil, refused(fmt.Errorf("workflow %s: %w", def.GetName(), err))
	}
	packed := proto.CloneOf(in)
	if err := definition.Pack(packed); err != nil {
		return nil, refused(fmt.Errorf("workflow %s: %w", def.GetName(), err))
	}
	if text, err := protojson.Marshal(packed); err != nil || len(text) > maxChildBytes {
		return nil, refused(errors.Join(fmt.Errorf("definition and input of workflow %s take %d bytes; at most %d are allowed", def.GetName(), len(text), maxChildBytes), err))
	}
	key := fmt.Sprintf("child\x00%s\x00%d\x00%s\x00%d", names.Home(req.GetRunId(), req.GetChain()), req.GetGeneration(), req.GetTask(), req.GetClaim())
	return &historyv1.PreparedChild{Id: names.KeyedRunID(def.GetName(), key), Workflow: def.GetName(), Input: in}, nil
}

// definition returns the definition that a spec contains or names. frozen holds the stored workflows that the approval of the run
// covers. It is nil for a run that needed no approval.
func (c *Children) definition(ctx context.Context, spec *v1.RunSpec, frozen *historyv1.FrozenWorkflows) (*v1.Definition, error) {
	if spec.GetDefinition() != nil {
		def, err := definition.FromStruct(spec.GetDefinition())
		if err != nil {
			return nil, refused(fmt.Errorf("the definition of the child run: %w", err))
		}
		return def, nil
	}
	if frozen != nil {
		def := frozen.GetDefinitions()[spec.GetWorkflow()]
		if def == nil {
			return nil, refused(fmt.Errorf("the approval of the run covers the stored workflows that it names, and not %s; submit a run that names it", strconv.Quote(spec.GetWorkflow())))
		}
		return proto.CloneOf(def), nil
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

// refusal is why a child run can never be started.
type refusal struct{ error }

func refused(err error) error { return &refusal{err} }

// Ends returns the results of completed child runs as answers of attempts. The output of a child run is its context.
// Results that are too large to travel are stored as result records. If the status of a run is lost for good, its answer
// says so.
func (c *Children) Ends(ctx context.Context, req *historyv1.ChildRunEndsRequest) (*historyv1.ChildRunEndsResponse, error) {
	res := &historyv1.ChildRunEndsResponse{}
	for _, child := range req.GetChildren() {
		answer, err := c.end(ctx, child)
		if gone, ok := errors.AsType[*temporal.ApplicationError](err); ok && gone.NonRetryable() {
			answer, err = &historyv1.ExecuteResponse{
				State: v1.TaskFailed, Reason: v1.ReasonSystem, Result: &v1.TaskResult{ExitCode: -1},
				Error: fmt.Sprintf("run %s completed, but its result cannot be read: %s", child.GetChild(), gone.Message()),
			}, nil
		}
		if err != nil {
			return nil, err
		}
		res.Answers = append(res.Answers, answer)
	}
	return res, nil
}

func (c *Children) end(ctx context.Context, req *historyv1.ChildRunEndRequest) (*historyv1.ExecuteResponse, error) {
	var status historyv1.StatusResponse
	if err := load(ctx, c.Store, storekey.Status(names.Home(req.GetChild(), req.GetChildChain()), req.GetChildGeneration()), &status); err != nil {
		return nil, err
	}
	run := status.GetRun()
	res := &historyv1.ExecuteResponse{
		State: v1.TaskCompleted, Result: &v1.TaskResult{Output: run.GetContext()},
		StartedAt: run.GetCreatedAt(), CompletedAt: run.GetCompletedAt(),
	}
	if results.Fits(res, int(req.GetInlineLimit())) {
		return res, nil
	}
	key := storekey.Result(names.Home(req.GetRunId(), req.GetChain()), req.GetGeneration(), req.GetTask(), req.GetAttempt())
	if err := c.Store.PutMessage(ctx, key, res); err != nil {
		return nil, err
	}
	return results.Cut(res, key, int(req.GetInlineLimit())), nil
}
