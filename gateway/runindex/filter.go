package runindex

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

// RunsQuery selects the newest execution of each run. Executions that have continued as new are excluded.
const RunsQuery = "WorkflowType = '" + names.RunWorkflow + "' AND ExecutionStatus != 'ContinuedAsNew'"

// AndOpen narrows a query to open runs.
const AndOpen = " AND ExecutionStatus = 'Running'"

// stateQueries select the runs in each state. Temporal's status of an ended run takes precedence over its search
// attributes, because a terminated run could not update them.
var stateQueries = map[string]string{
	v1.RunPending: "ExecutionStatus = 'Running' AND (" + names.StateAttribute + " = '" + v1.RunPending + "' OR " + names.StateAttribute + " IS NULL)",

	v1.RunPendingApproval: "ExecutionStatus = 'Running' AND " + names.StateAttribute + " = '" + v1.RunPendingApproval + "'",

	v1.RunRunning:   "ExecutionStatus = 'Running' AND " + names.StateAttribute + " = '" + v1.RunRunning + "'",
	v1.RunPaused:    "ExecutionStatus = 'Running' AND " + names.StateAttribute + " = '" + v1.RunPaused + "'",
	v1.RunCompleted: "ExecutionStatus = 'Completed'",
	v1.RunFailed: "(ExecutionStatus IN ('Terminated', 'TimedOut') OR ExecutionStatus = 'Failed' AND (" +
		names.StateAttribute + " != '" + v1.RunRejected + "' OR " + names.StateAttribute + " IS NULL))",
	v1.RunRejected:  "ExecutionStatus = 'Failed' AND " + names.StateAttribute + " = '" + v1.RunRejected + "'",
	v1.RunCancelled: "ExecutionStatus = 'Canceled'",
}

// RunFilter selects the runs of a list.
type RunFilter struct {
	*v1.ListRunsRequest
	parent string // resolved run id
}

// Filter returns the filter of a request; the name in the request is that of a workflow. The error is InvalidArgument if
// no run can match.
func (x *Index) Filter(ctx context.Context, req *v1.ListRunsRequest) (RunFilter, error) {
	f := RunFilter{ListRunsRequest: req}
	for _, c := range []struct{ what, value string }{
		{"node", req.GetNode()}, {"type", req.GetType()}, {"label", req.GetLabel()}, {"text", req.GetText()},
		{"owner", req.GetOwner()},
	} {
		if err := ValidateValue(c.what, c.value); err != nil {
			return f, err
		}
	}
	var err error
	if req.GetParent() != "" {
		f.parent, err = x.Resolve(ctx, req.GetParent())
	}
	return f, err
}

// Query returns a visibility query for the runs of the filter. It may select more runs, because databases may ignore
// case.
func (f RunFilter) Query() string {
	conditions := []string{RunsQuery}
	if f.GetState() != "" {
		conditions = append(conditions, stateQueries[f.GetState()])
	}
	for _, c := range []struct{ attribute, value string }{
		{names.WorkflowAttribute, f.GetName()}, {names.TriggerAttribute, f.GetTrigger()}, {names.ParentAttribute, f.parent},
		{names.NodesAttribute, f.GetNode()}, {names.TypesAttribute, f.GetType()}, {names.LabelsAttribute, f.GetLabel()},
		{names.TextAttribute, f.GetText()}, {names.BatchAttribute, f.GetBatch()},
	} {
		if c.value != "" {
			conditions = append(conditions, c.attribute+" = "+quote(c.value))
		}
	}
	if f.GetOwner() != "" {
		conditions = append(conditions, names.OwnerAttribute+" IN ("+quote(f.GetOwner())+", "+quote(f.GetOwner()+auth.Unverified)+")")
	}
	if f.GetSince() != nil {
		conditions = append(conditions, names.SubmittedAttribute+" >= "+QuoteTime(f.GetSince()))
	}
	if f.GetLate() {
		conditions = append(conditions, names.LateSinceAttribute+" IS NOT NULL")
	}
	return strings.Join(conditions, " AND ")
}

// Matches reports whether a run that the query has selected matches the filter.
func (f RunFilter) Matches(info *workflowpb.WorkflowExecutionInfo) bool {
	known := visibility.Decode(info.GetSearchAttributes())
	return (f.GetName() == "" || known.Workflow == f.GetName()) &&
		(f.parent == "" || known.Parent == f.parent) &&
		(f.GetOwner() == "" || known.Owner == f.GetOwner() || known.Owner == f.GetOwner()+auth.Unverified) &&
		(f.GetBatch() == "" || known.Batch == f.GetBatch()) &&
		(f.GetNode() == "" || slices.Contains(known.Nodes, f.GetNode())) &&
		(f.GetLabel() == "" || slices.Contains(known.Labels, f.GetLabel()))
}

// ValidateValue returns an error for a text that is not allowed in a query. Temporal's SQL stores insert the values for
// lists and texts into their statements verbatim, so escaping cannot keep a quotation mark from ending the value.
func ValidateValue(what, value string) error {
	if strings.ContainsAny(value, "'`\"\\?") || strings.ContainsFunc(value, unicode.IsControl) {
		return rpcerror.Invalid("cannot filter runs by %s %.80q; it must not contain quotation marks, backslashes, question marks or control characters", what, value)
	}
	if value != "" && strings.TrimSpace(value) == "" {
		return rpcerror.Invalid("cannot filter runs by a blank %s", what)
	}
	return nil
}

// quote returns a text as a query literal. ValidateValue, or a rule for names, must have accepted the text.
func quote(text string) string { return "'" + text + "'" }

// QuoteTime returns a time as a query literal.
func QuoteTime(t *timestamppb.Timestamp) string {
	return quote(t.AsTime().UTC().Format(time.RFC3339Nano))
}
