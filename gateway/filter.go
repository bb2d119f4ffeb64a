package gateway

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

// runsQuery finds the newest execution of each run. A run that went on in
// another execution is found as that one.
const runsQuery = "WorkflowType = '" + names.RunWorkflow + "' AND ExecutionStatus != 'ContinuedAsNew'"

// stateQueries find the runs in a state. What Temporal itself knows of the end of a run goes before what the run has said
// of itself, because one that was terminated has not said it.
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

// runFilter is what a list of runs shows.
type runFilter struct {
	*v1.ListRunsRequest
	parent string // resolved
}

// filterOf returns the filter of a request. InvalidArgument when there can be no such run.
func (g *Gateway) filterOf(ctx context.Context, req *v1.ListRunsRequest) (runFilter, error) {
	f := runFilter{ListRunsRequest: req}
	if name := req.GetName(); name != "" {
		if err := checkWorkflowName(name); err != nil {
			return f, err
		}
	}
	for _, c := range []struct{ what, value string }{
		{"node", req.GetNode()}, {"type", req.GetType()}, {"label", req.GetLabel()}, {"text", req.GetText()},
		{"owner", req.GetOwner()},
	} {
		if err := checkFilterValue(c.what, c.value); err != nil {
			return f, err
		}
	}
	var err error
	if req.GetParent() != "" {
		f.parent, err = g.resolve(ctx, req.GetParent())
	}
	return f, err
}

// query returns the query that finds the runs of the filter. Databases may compare without regard to case.
func (f runFilter) query() string {
	conditions := []string{runsQuery}
	if f.GetState() != "" {
		conditions = append(conditions, stateQueries[f.GetState()])
	}
	for _, c := range []struct{ attribute, value string }{
		{names.WorkflowAttribute, f.GetName()}, {names.TriggerAttribute, f.GetTrigger()}, {names.ParentAttribute, f.parent},
		{names.NodesAttribute, f.GetNode()}, {names.TypesAttribute, f.GetType()}, {names.LabelsAttribute, f.GetLabel()},
		{names.TextAttribute, f.GetText()}, {names.BatchAttribute, f.GetBatch()},
	} {
		if c.value != "" {
			conditions = append(conditions, c.attribute+" = "+quoted(c.value))
		}
	}
	if f.GetOwner() != "" {
		conditions = append(conditions, names.OwnerAttribute+" IN ("+quoted(f.GetOwner())+", "+quoted(f.GetOwner()+unverified)+")")
	}
	if f.GetSince() != nil {
		conditions = append(conditions, names.SubmittedAttribute+" >= "+quotedTime(f.GetSince()))
	}
	return strings.Join(conditions, " AND ")
}

// matches reports whether a run that the query has found is one of the filter.
func (f runFilter) matches(info *workflowpb.WorkflowExecutionInfo) bool {
	known := visibility.Decode(info.GetSearchAttributes())
	return (f.GetName() == "" || known.Workflow == f.GetName()) &&
		(f.parent == "" || known.Parent == f.parent) &&
		(f.GetOwner() == "" || known.Owner == f.GetOwner() || known.Owner == f.GetOwner()+unverified) &&
		(f.GetBatch() == "" || known.Batch == f.GetBatch()) &&
		(f.GetNode() == "" || slices.Contains(known.Nodes, f.GetNode())) &&
		(f.GetLabel() == "" || slices.Contains(known.Labels, f.GetLabel()))
}

// checkFilterValue returns an error for a text that may not stand in a query. Temporal's SQL stores put the values for
// lists and texts into their statements as they are, so that no escape keeps a quotation mark from ending the value.
func checkFilterValue(what, value string) error {
	if strings.ContainsAny(value, "'`\"\\?") || strings.ContainsFunc(value, unicode.IsControl) {
		return invalid("runs cannot be listed by the %s %.80q; it may hold no quotation mark, backslash, question mark or control character", what, value)
	}
	if value != "" && strings.TrimSpace(value) == "" {
		return invalid("runs cannot be listed by a %s of spaces", what)
	}
	return nil
}

// quoted is a text that checkFilterValue, or a rule for names, has let through, as a query holds it.
func quoted(text string) string { return "'" + text + "'" }

// quotedTime returns a time as a query holds it.
func quotedTime(t *timestamppb.Timestamp) string {
	return quoted(t.AsTime().UTC().Format(time.RFC3339Nano))
}
