package gateway

import (
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
	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

const (
	// maxDefinitionBytes bounds a definition that comes as a message; a document
	// has the same bound.
	maxDefinitionBytes = 1 << 20
	// maxPayloadBytes is what the input of a workflow may take, encoded; Temporal
	// takes 2 MB, with everything around it and what later executions carry.
	maxPayloadBytes = 1_600_000
	// maxDetailBytes is what the description of a run in Temporal may take.
	maxDetailBytes = 4 << 10
	// runTaskTimeout is after which time a workflow task whose worker has died goes to
	// another one; a dead owner of the control queue is replaced well within 10 s.
	runTaskTimeout = 6 * time.Second
	// minHeartbeatTimeout is the least heartbeat time-out of attempts; with less they
	// would not have the time to beat, and to end when they cannot.
	minHeartbeatTimeout = time.Second
	// idAttempts is how often a fresh id is drawn before giving up.
	idAttempts = 3
)

// Keys of the memo of a run's workflow.
const (
	nameMemo      = "name"
	submittedMemo = "submittedAt"
)

// SubmitRun checks a definition and starts a run of it.
func (g *Gateway) SubmitRun(ctx context.Context, req *connect.Request[v1.SubmitRunRequest]) (*connect.Response[v1.SubmitRunResponse], error) {
	def, err := readDefinition(req.Msg)
	if err != nil {
		return nil, err
	}
	references, err := definition.References(def)
	if err != nil {
		return nil, definitionError(err)
	}
	if d := req.Msg.GetOptions().GetHeartbeatTimeout().AsDuration(); d != 0 && d < minHeartbeatTimeout {
		return nil, invalid("the heartbeat time-out is %s; it must be at least %s", d, minHeartbeatTimeout)
	}
	if d := req.Msg.GetOptions().GetPlacementTimeout().AsDuration(); d < 0 {
		return nil, invalid("the placement time-out is %s; it must not be negative", d)
	}
	in := &v1.RunInput{
		Definition: def, Input: req.Msg.GetInput(), References: references, Options: req.Msg.GetOptions(),
	}
	payload, err := converter.GetDefaultDataConverter().ToPayload(in)
	if err != nil {
		return nil, fmt.Errorf("encode the input of a run: %w", err)
	}
	if size := proto.Size(payload); size > maxPayloadBytes {
		return nil, invalid("definition and input together take %d bytes; a run may take %d", size, maxPayloadBytes)
	}
	id, err := g.start(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("start a run of %s: %w", def.GetName(), err)
	}
	g.recent.add(id)
	return connect.NewResponse(&v1.SubmitRunResponse{Id: id, Name: def.GetName()}), nil
}

// readDefinition returns the checked definition of a request.
func readDefinition(req *v1.SubmitRunRequest) (*v1.Definition, error) {
	if def := req.GetDefinition(); def != nil {
		if size := proto.Size(def); size > maxDefinitionBytes {
			return nil, invalid("the definition takes %d bytes; it may take %d", size, maxDefinitionBytes)
		}
		return def, definitionError(definition.Check(def))
	}
	file := req.GetFile()
	if file == "" {
		file = "definition"
	}
	def, err := definition.Parse(file, []byte(req.GetDocument()))
	return def, definitionError(err)
}

// definitionError is InvalidArgument with every problem as its detail.
func definitionError(err error) error {
	if err == nil {
		return nil
	}
	failed := connect.NewError(connect.CodeInvalidArgument, err)
	if problems, ok := errors.AsType[definition.Problems](err); ok {
		if detail, err := connect.NewErrorDetail(&v1.ValidationFailure{Problems: problems}); err == nil {
			failed.AddDetail(detail)
		}
	}
	return failed
}

// start starts the workflow of a run under a fresh id and returns that.
func (g *Gateway) start(ctx context.Context, in *v1.RunInput) (id string, err error) {
	def := in.GetDefinition()
	for range idAttempts {
		id = names.NewRunID(def.GetName())
		_, err = g.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID:                       id,
			TaskQueue:                names.ControlQueue,
			WorkflowTaskTimeout:      runTaskTimeout,
			WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
			WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
			Memo: map[string]any{
				nameMemo:      def.GetName(),
				submittedMemo: g.config.Now().UTC().Format(time.RFC3339Nano),
			},
			StaticSummary: runSummary(def),
			StaticDetails: runDetails(def),

			WorkflowExecutionErrorWhenAlreadyStarted: true,
		}, names.RunWorkflow, in)
		if codeOf(err) != connect.CodeAlreadyExists {
			break
		}
	}
	return id, err
}

// runSummary is the line that Temporal's Web UI shows for a run.
func runSummary(def *v1.Definition) string {
	if n := len(def.GetTasks()); n != 1 {
		return fmt.Sprintf("%s: %d tasks", def.GetName(), n)
	}
	return def.GetName() + ": 1 task"
}

// runDetails is the text, in Markdown, that Temporal's Web UI shows for a run.
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
