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
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

// lastRun is the word that users type for the run that they submitted last.
const lastRun = "last"

// MaxCandidates is the number of runs that an error about an ambiguous prefix names.
const MaxCandidates = 5

// runIDText matches valid run ids and prefixes of them.
var runIDText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`) })

// Resolve returns the id of the run that a text names: its id, "last" for the run that the caller submitted last,
// or a unique prefix of its id. A run that the caller may not see is not found and does not make a prefix ambiguous.
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

// lastSubmitted returns the id of the run that the caller submitted last: never one of another caller, a schedule or a task. It
// also considers the runs that this gateway has just started, because visibility may lag.
func (x *Index) lastSubmitted(ctx context.Context) (string, error) {
	caller := scopeOf(ctx).caller
	last, err := x.newestSubmittedBy(ctx, caller.Name)
	if err != nil {
		return "", fmt.Errorf("look for the last run: %w", err)
	}
	if recent, known := x.recent.newestOf(caller.Name); known && !recent.submitted.Before(last.submitted) {
		last = recent
	}
	if last.id != "" {
		return last.id, nil
	}
	others, err := x.NewestExecutions(ctx, submittedQuery, nil, 1, AnyExecution)
	if err != nil {
		return "", fmt.Errorf("look for the newest run: %w", err)
	}
	problem := "you have not submitted a run to this gateway" + prefixed(" as ", caller.Name)
	if len(others) > 0 {
		problem += "; the newest run is " + others[0].GetExecution().GetWorkflowId() + originOf(others[0])
	}
	return "", rpcerror.MissingAs("run", lastRun, problem)
}

// newestSubmittedBy returns the run that owner submitted last, or the zero value for an owner without runs. The time of
// submission counts: a retry or a new execution does not make a run newer.
func (x *Index) newestSubmittedBy(ctx context.Context, owner string) (submittedRun, error) {
	var newest submittedRun
	scope := scopeOf(ctx)
	query, any := scope.narrow(submittedQuery)
	if !any {
		return newest, nil
	}
	if owner != "" && ValidateValue("owner", owner) == nil {
		query += " AND " + names.OwnerAttribute + " = " + quote(owner)
	}
	noteNewest := func(info *workflowpb.WorkflowExecutionInfo) bool {
		known := visibility.Decode(info.GetSearchAttributes())
		if scope.reaches(info) && known.Owner == owner && v1.IsGatewayTrigger(known.Trigger) && known.Submitted.After(newest.submitted) {
			newest = submittedRun{info.GetExecution().GetWorkflowId(), owner, known.Submitted}
		}
		return false // search keeps none
	}
	for _, window := range ListWindows {
		_, err := x.search(ctx, query+" AND "+names.SubmittedAttribute+" >= "+QuoteTime(timestamppb.New(x.now().Add(-window))), nil, 0, noteNewest)
		if err != nil || newest.id != "" {
			return newest, err
		}
	}
	_, err := x.search(ctx, query, nil, 0, noteNewest)
	return newest, err
}

// originOf returns who or what started a run, with a space before it, or "" if that is unknown.
func originOf(info *workflowpb.WorkflowExecutionInfo) string {
	known := visibility.Decode(info.GetSearchAttributes())
	if known.Trigger == v1.TriggerSchedule {
		return " of a schedule"
	}
	return prefixed(" of ", known.Owner)
}

// prefixed returns a text with a prefix, or "" if the text is empty.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}
