package runindex

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"connectrpc.com/connect"
	workflowpb "go.temporal.io/api/workflow/v1"

	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	"switchyard/workflows/names"
)

// lastRun is the name that users type for the run that was submitted last.
const lastRun = "last"

// MaxCandidates is the number of runs that an error about an ambiguous prefix names.
const MaxCandidates = 5

// runIDText matches valid run ids and prefixes of them.
var runIDText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`) })

// Resolve returns the id of the run that a text names: its id, "last", or a unique prefix of its id. A run that the
// caller may not see is not found and does not make a prefix ambiguous.
func (x *Index) Resolve(ctx context.Context, text string) (string, error) {
	if text == lastRun {
		return x.lastSubmitted(ctx)
	}
	if !runIDText().MatchString(text) {
		return "", rpcerror.NoRun(text)
	}
	scope := scopeOf(ctx)
	desc, err := x.reader.Describe(ctx, text)
	if err == nil && scope.reaches(desc.GetWorkflowExecutionInfo()) {
		return text, nil
	}
	if err != nil && rpcerror.CodeOf(err) != connect.CodeNotFound {
		return "", fmt.Errorf("look for run %s: %w", text, err)
	}
	// Ask for one more than the error names, so that it can tell that there are others.
	found, err := x.NewestExecutions(ctx, RunsQuery+" AND WorkflowId STARTS_WITH "+quote(text), nil, MaxCandidates+1, func(info *workflowpb.WorkflowExecutionInfo) bool {
		return strings.HasPrefix(info.GetExecution().GetWorkflowId(), text) // some databases ignore case
	})
	if err != nil {
		return "", fmt.Errorf("look for run %s: %w", text, err)
	}
	candidates := x.recent.findPrefix(text, scope.caller.Reaches)
	for _, info := range found {
		if id := info.GetExecution().GetWorkflowId(); !slices.Contains(candidates, id) {
			candidates = append(candidates, id)
		}
	}
	switch len(candidates) {
	case 0:
		return "", rpcerror.NoRun(text)
	case 1:
		return candidates[0], nil
	}
	more := ""
	if len(candidates) > MaxCandidates {
		candidates, more = candidates[:MaxCandidates], ", ..."
	}
	return "", rpcerror.Invalid("%q is ambiguous: %s%s", text, strings.Join(candidates, ", "), more)
}

// submittedQuery excludes the runs that tasks of type run have started.
const submittedQuery = RunsQuery + " AND " + names.ParentAttribute + " IS NULL"

// lastSubmitted returns the id of the newest run that was submitted rather than started by a task. It also considers the
// runs that this gateway has just started, because visibility may lag.
func (x *Index) lastSubmitted(ctx context.Context) (string, error) {
	found, err := x.NewestExecutions(ctx, submittedQuery, nil, 1, AnyExecution)
	if err != nil {
		return "", fmt.Errorf("look for the last run: %w", err)
	}
	recent, known := x.recent.newest(scopeOf(ctx).caller.Reaches)
	if !known {
		if len(found) == 0 {
			return "", rpcerror.NotFound("there are no runs yet")
		}
		return found[0].GetExecution().GetWorkflowId(), nil
	}
	if len(found) == 0 || found[0].GetExecution().GetWorkflowId() == recent {
		return recent, nil
	}
	desc, err := x.reader.Describe(ctx, recent)
	if err == nil && paging.PositionOf(desc.GetWorkflowExecutionInfo()).Before(paging.PositionOf(found[0])) {
		return recent, nil
	}
	return found[0].GetExecution().GetWorkflowId(), nil
}
