package submission

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"connectrpc.com/connect"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/owners"
	"switchyard/activities/store"
	"switchyard/gateway/auth"
	"switchyard/gateway/definitions"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/definition/source"
)

// Submitter checks requests and starts runs. It is safe for concurrent use.
type Submitter struct {
	Client client.Client
	Store  *store.Store
	Reader *runview.Reader
	Index  *runindex.Index
	// Owners holds the quotas of owners. nil means that there are none.
	Owners      *owners.Owners
	Definitions definitions.Checker
	// ApproveUserRuns makes runs that users submit wait for the approval of an operator.
	ApproveUserRuns bool
	Now             func() time.Time
	Log             *slog.Logger
}

// SubmitRun checks a definition and starts a run of it.
func (s *Submitter) SubmitRun(ctx context.Context, req *connect.Request[v1.SubmitRunRequest]) (*connect.Response[v1.SubmitRunResponse], error) {
	answer, err := s.Submit(ctx, req.Msg)
	if err != nil {
		return nil, err
	}
	res := connect.NewResponse(answer)
	if !answer.GetExisted() {
		MarkCreated(res, answer.GetId())
	}
	return res, nil
}

// Submit starts the run that a request describes. The header Idempotency-Key supplies the key if the request has none.
func (s *Submitter) Submit(ctx context.Context, req *v1.SubmitRunRequest) (*v1.SubmitRunResponse, error) {
	key, err := Key(ctx, req.GetIdempotencyKey())
	if err != nil {
		return nil, err
	}
	in, warnings, err := s.Prepare(ctx, req)
	if err != nil {
		return nil, err
	}
	if in.Source, err = s.source(ctx, in.GetDefinition(), req.GetSourceUpload()); err != nil {
		return nil, err
	}
	name := in.GetDefinition().GetName()
	id, existed, err := s.Start(ctx, in, v1.TriggerSubmit, key)
	if err != nil {
		return nil, fmt.Errorf("start a run of %s: %w", name, err)
	}
	return &v1.SubmitRunResponse{Id: id, Name: name, Existed: existed, Warnings: warnings}, nil
}

// Prepare checks a request and returns the input of its run and the warnings about its definition.
func (s *Submitter) Prepare(ctx context.Context, req *v1.SubmitRunRequest) (*historyv1.RunInput, source.Problems, error) {
	checked, err := s.Definitions.Read(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	missing, err := s.Definitions.FindMissing(ctx, checked.Stored)
	if err != nil {
		return nil, nil, err
	}
	if len(missing) > 0 {
		return nil, nil, definitions.Error(missing)
	}
	def := checked.Definition
	input, err := definition.Input(def, req.GetInput())
	if err != nil {
		return nil, nil, definitions.Error(err)
	}
	if err := checkInput(input); err != nil {
		return nil, nil, err
	}
	references, err := definition.References(def)
	if err != nil {
		return nil, nil, definitions.Error(err)
	}
	if err := checkOptions(req.GetOptions()); err != nil {
		return nil, nil, err
	}
	in := &historyv1.RunInput{
		Definition: def, Input: input, References: references, Options: s.Definitions.Defaults.FillOptions(req.GetOptions()), Batch: req.GetBatch(),
	}
	return in, slices.Concat(checked.Warnings, unusedSchedule(req, checked), s.Definitions.WarnOfTargets(ctx, checked.Told),
		s.Definitions.WarnOfTolerations(ctx, checked.Tolerated)), s.recordSubmitter(ctx, in)
}

// recordSubmitter records the caller in the input of a run, along with the consequences of the caller's role.
func (s *Submitter) recordSubmitter(ctx context.Context, in *historyv1.RunInput) error {
	p := auth.From(ctx)
	in.By = p.Name
	if p.IsVerified() {
		in.ByRole, in.SignedDecisions = p.Role.Word(), true
	}
	return s.RequireApproval(ctx, in)
}

// RequireApproval makes a run wait for the approval of an operator if the caller needs one for its definition, and freezes the
// stored workflows that the approval covers. A run that has needed an approval needs one also at a gateway that requires none.
func (s *Submitter) RequireApproval(ctx context.Context, in *historyv1.RunInput) (err error) {
	p := auth.From(ctx)
	in.NeedsApproval = (s.ApproveUserRuns || in.Workflows != nil) && p.NeedsApproval()
	if in.NeedsApproval && in.Workflows == nil {
		in.Workflows, err = s.Definitions.Freeze(ctx, in.GetDefinition())
	}
	return err
}

// unusedSchedule returns a warning if a definition that is not stored has a schedule.
func unusedSchedule(req *v1.SubmitRunRequest, checked definition.Checked) source.Problems {
	if checked.Schedule == nil || req.GetWorkflow() != "" {
		return nil
	}
	problem := proto.CloneOf(checked.Schedule)
	problem.Message = "a schedule has no effect on a submitted run"
	problem.Hint = "store the workflow with `switchyard workflows put FILE` to start it on schedule"
	return source.Problems{problem}
}
