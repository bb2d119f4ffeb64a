package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

const (
	// maxDefinitionBytes bounds a definition that is sent as a message. A document has the same bound.
	maxDefinitionBytes = 1 << 20
	// maxInputBytes bounds the input of a run, as JSON. The input is part of the status that a run reports.
	maxInputBytes = 1 << 20
	// maxPayloadBytes bounds the encoded input of a workflow. Temporal's own limit is 2 MB, which also has to hold the
	// rest of the request and what later executions carry.
	maxPayloadBytes = 1_600_000
	// maxDetailBytes bounds the description of a run in Temporal.
	maxDetailBytes = 4 << 10
	// runTaskTimeout is the time after which a workflow task of a dead worker moves to another one. It lets a dead
	// owner of the control queue be replaced well within 10 s.
	runTaskTimeout = 6 * time.Second
	// minHeartbeatTimeout is the shortest heartbeat time-out of attempts. A shorter one would leave attempts no time
	// to send a heartbeat, or to end themselves when they cannot.
	minHeartbeatTimeout = time.Second
	// idAttempts is how often a fresh id is drawn before giving up.
	idAttempts = 3
)

// SubmitRun checks a definition and starts a run of it.
func (g *Gateway) SubmitRun(ctx context.Context, req *connect.Request[v1.SubmitRunRequest]) (*connect.Response[v1.SubmitRunResponse], error) {
	answer, err := g.submit(ctx, req.Msg)
	if err != nil {
		return nil, err
	}
	res := connect.NewResponse(answer)
	if !answer.GetExisted() {
		markCreated(res, answer.GetId())
	}
	return res, nil
}

// submit starts the run that a request describes. The header Idempotency-Key supplies the key if the request has none.
func (g *Gateway) submit(ctx context.Context, req *v1.SubmitRunRequest) (*v1.SubmitRunResponse, error) {
	key, err := idempotencyKey(ctx, req.GetIdempotencyKey())
	if err != nil {
		return nil, err
	}
	in, warnings, err := g.prepare(ctx, req)
	if err != nil {
		return nil, err
	}
	name := in.GetDefinition().GetName()
	id, existed, err := g.start(ctx, in, v1.TriggerSubmit, key)
	if err != nil {
		return nil, fmt.Errorf("start a run of %s: %w", name, err)
	}
	return &v1.SubmitRunResponse{Id: id, Name: name, Existed: existed, Warnings: warnings}, nil
}

// prepare checks a request and returns the input of its run and the warnings about its definition.
func (g *Gateway) prepare(ctx context.Context, req *v1.SubmitRunRequest) (*v1.RunInput, source.Problems, error) {
	checked, err := g.readDefinition(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	missing, err := g.missingWorkflows(ctx, checked.Stored)
	if err != nil {
		return nil, nil, err
	}
	if len(missing) > 0 {
		return nil, nil, definitionError(missing)
	}
	def := checked.Definition
	input, err := definition.Input(def, req.GetInput())
	if err != nil {
		return nil, nil, definitionError(err)
	}
	if err := checkInput(input); err != nil {
		return nil, nil, err
	}
	references, err := definition.References(def)
	if err != nil {
		return nil, nil, definitionError(err)
	}
	if err := checkOptions(req.GetOptions()); err != nil {
		return nil, nil, err
	}
	return g.submittedBy(ctx, &v1.RunInput{
		Definition: def, Input: input, References: references, Options: g.config.Defaults.FillOptions(req.GetOptions()), Batch: req.GetBatch(),
	}), slices.Concat(checked.Warnings, unusedSchedule(req, checked)), nil
}

// submittedBy records the caller in the input of a run, along with the consequences of the caller's role.
func (g *Gateway) submittedBy(ctx context.Context, in *v1.RunInput) *v1.RunInput {
	p := auth.From(ctx)
	in.By = p.Name
	if p.IsVerified() {
		in.ByRole, in.SignedDecisions, in.NeedsApproval = p.Role.Word(), true, g.config.ApproveUserRuns && !p.SeesAll()
	}
	return in
}

// unusedSchedule returns a warning if a definition that is not stored has a schedule.
func unusedSchedule(req *v1.SubmitRunRequest, checked definition.Checked) source.Problems {
	if checked.Schedule == nil || req.GetWorkflow() != "" {
		return nil
	}
	problem := proto.CloneOf(checked.Schedule)
	problem.Message = "schedule has no effect on a run that is submitted"
	problem.Hint = "`switchyard workflows put FILE` stores the workflow, which starts by it then"
	return source.Problems{problem}
}

func checkOptions(o *v1.RunOptions) error {
	if d := o.GetHeartbeatTimeout().AsDuration(); d != 0 && d < minHeartbeatTimeout {
		return rpcerror.Invalid("the heartbeat time-out is %s; it must be at least %s", d, minHeartbeatTimeout)
	}
	if d := o.GetPickupTimeout(); d != nil && d.AsDuration() < definition.MinPickupTimeout {
		return rpcerror.Invalid("the pick-up time-out is %s; it must be at least %s", d.AsDuration(), definition.MinPickupTimeout)
	}
	if d := o.GetPlacementTimeout().AsDuration(); d < 0 {
		return rpcerror.Invalid("the placement time-out is %s; it must not be negative", d)
	}
	return nil
}

func checkInput(input *structpb.Struct) error {
	text, err := protojson.Marshal(input)
	if err != nil {
		return rpcerror.Invalid("the input is no JSON: %v", err)
	}
	if len(text) > maxInputBytes {
		return rpcerror.Invalid("the input takes %d bytes; it may take %d: put large data where the tasks can fetch it", len(text), maxInputBytes)
	}
	return nil
}

// packed returns in as it is sent to Temporal, with its definition compressed. The error is InvalidArgument if it is
// still too large.
func packed(in *v1.RunInput) (*v1.RunInput, error) {
	in = proto.CloneOf(in)
	in.Carry, in.ParentFirst = nil, "" // a new run carries nothing, and no parent awaits it
	if err := definition.Pack(in); err != nil {
		return nil, fmt.Errorf("pack the definition: %w", err)
	}
	payload, err := converter.GetDefaultDataConverter().ToPayload(in)
	if err != nil {
		return nil, fmt.Errorf("encode the input of a run: %w", err)
	}
	if size := proto.Size(payload); size > maxPayloadBytes {
		return nil, rpcerror.Invalid("definition and input together take %d bytes, compressed; a run may take %d", size, maxPayloadBytes)
	}
	return in, nil
}

// readDefinition returns the checked definition of a request.
func (g *Gateway) readDefinition(ctx context.Context, req *v1.SubmitRunRequest) (definition.Checked, error) {
	name := req.GetWorkflow()
	if name == "" {
		return g.definitionOf(req.GetDefinition(), req.GetFile(), req.GetDocument())
	}
	if err := checkWorkflowName(name); err != nil {
		return definition.Checked{}, err
	}
	stored, err := g.library.Get(ctx, name)
	if err != nil {
		return definition.Checked{}, g.libraryError(ctx, name, err)
	}
	// A newer version of the program may have stricter rules than the one that stored the definition.
	return g.completed(stored.Definition)
}

// definitionOf returns the checked definition from a message or a document, with the defaults of the fleet filled in.
func (g *Gateway) definitionOf(def *v1.Definition, file, document string) (definition.Checked, error) {
	if def != nil {
		if size := proto.Size(def); size > maxDefinitionBytes {
			return definition.Checked{}, rpcerror.Invalid("the definition takes %d bytes; it may take %d", size, maxDefinitionBytes)
		}
		return g.completed(def)
	}
	checked, err := definition.ParseChecked(cmp.Or(file, "definition"), []byte(document))
	if err != nil {
		return definition.Checked{}, definitionError(err)
	}
	g.config.Defaults.FillDefinition(checked.Definition)
	return checked, nil
}

// completed returns a checked definition with its own defaults and those of the fleet filled into its tasks.
func (g *Gateway) completed(def *v1.Definition) (definition.Checked, error) {
	checked, err := definition.CompleteChecked(def)
	if err != nil {
		return definition.Checked{}, definitionError(err)
	}
	g.config.Defaults.FillDefinition(checked.Definition)
	return checked, nil
}

// definitionError returns err as InvalidArgument, with every problem as its detail.
func definitionError(err error) error {
	if err == nil {
		return nil
	}
	if problems, ok := errors.AsType[source.Problems](err); ok {
		return rpcerror.InvalidWith(err, &v1.ValidationFailure{Problems: problems})
	}
	return connect.NewError(connect.CodeInvalidArgument, err)
}

// start starts the workflow of a run and returns the run's id: a fresh one, or the one that belongs to an idempotency
// key. existed reports that the same request had already started the run.
func (g *Gateway) start(ctx context.Context, in *v1.RunInput, trigger, key string) (id string, existed bool, err error) {
	name := in.GetDefinition().GetName()
	sent, err := packed(in)
	if err != nil {
		return "", false, err
	}
	attributes := visibility.Started(name, trigger, g.config.Now())
	attributes.AddOrigin(in.GetBy(), in.GetBatch())
	memo := map[string]any{}
	attempts := idAttempts
	if key != "" {
		if memo[names.RequestMemo], err = fingerprint(in, key); err != nil {
			return "", false, err
		}
		if err := g.claim(ctx, key, in.GetBy(), names.KeyedRunID(name, ownKey(in.GetBy(), key))); err != nil {
			return "", false, err
		}
		attempts = 1
	}
	for range attempts {
		id = names.NewRunID(name)
		if key != "" {
			id = names.KeyedRunID(name, ownKey(in.GetBy(), key))
		}
		_, err = g.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID:                       id,
			TaskQueue:                names.ControlQueue,
			WorkflowTaskTimeout:      runTaskTimeout,
			WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
			WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
			Memo:                     memo,
			TypedSearchAttributes:    attributes.Typed(),
			StaticSummary:            runSummary(in.GetDefinition()),
			StaticDetails:            runDetails(in.GetDefinition()),

			WorkflowExecutionErrorWhenAlreadyStarted: true,
		}, names.RunWorkflow, sent)
		if rpcerror.CodeOf(err) != connect.CodeAlreadyExists {
			break
		}
	}
	if key != "" && rpcerror.CodeOf(err) == connect.CodeAlreadyExists {
		return id, true, g.sameRequest(ctx, id, key, memo[names.RequestMemo].(string))
	}
	if err == nil {
		g.index.AddSubmitted(id, in.GetBy())
	}
	return id, false, err
}

// runSummary returns the one-line summary of a run in Temporal's Web UI.
func runSummary(def *v1.Definition) string {
	if n := len(def.GetTasks()); n != 1 {
		return fmt.Sprintf("%s: %d tasks", def.GetName(), n)
	}
	return def.GetName() + ": 1 task"
}

// runDetails returns the description, in Markdown, of a run in Temporal's Web UI.
func runDetails(def *v1.Definition) string {
	var b strings.Builder
	if d := def.GetDescription(); d != "" {
		fmt.Fprintf(&b, "%s\n\n", d)
	}
	for _, name := range slices.Sorted(maps.Keys(def.GetTasks())) {
		task := def.GetTasks()[name]
		fmt.Fprintf(&b, "- `%s` (%s)", name, task.GetType())
		if len(task.GetDependsOn()) > 0 {
			fmt.Fprintf(&b, " after %s", strings.Join(task.GetDependsOn(), ", "))
		}
		b.WriteByte('\n')
		if b.Len() > maxDetailBytes {
			return strings.ToValidUTF8(b.String()[:maxDetailBytes], "") + "...\n"
		}
	}
	return b.String()
}
