package gateway

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"connectrpc.com/connect"
	workflowpb "go.temporal.io/api/workflow/v1"

	"switchyard/workflows/names"
)

// lastRun is what people type for the run that was submitted last.
const lastRun = "last"

// maxCandidates is how many runs an error about an ambiguous prefix names.
const maxCandidates = 5

// runIDText is what run ids, and prefixes of them, consist of.
var runIDText = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`)

// resolve turns what somebody typed for a run into its id: the id itself, "last",
// or a prefix of one id only.
func (g *Gateway) resolve(ctx context.Context, text string) (string, error) {
	if text == lastRun {
		return g.lastSubmitted(ctx)
	}
	if !runIDText.MatchString(text) {
		return "", noRun(text)
	}
	_, err := g.reader.describe(ctx, text)
	if err == nil {
		return text, nil
	}
	if codeOf(err) != connect.CodeNotFound {
		return "", fmt.Errorf("look for run %s: %w", text, err)
	}
	// One more than is named, so that the error can say that there are others.
	found, err := g.newest(ctx, runsQuery+" AND WorkflowId STARTS_WITH "+quoted(text), nil, maxCandidates+1, func(info *workflowpb.WorkflowExecutionInfo) bool {
		return strings.HasPrefix(info.GetExecution().GetWorkflowId(), text) // some databases ignore case
	})
	if err != nil {
		return "", fmt.Errorf("look for run %s: %w", text, err)
	}
	candidates := g.recent.withPrefix(text)
	for _, info := range found {
		if id := info.GetExecution().GetWorkflowId(); !slices.Contains(candidates, id) {
			candidates = append(candidates, id)
		}
	}
	switch len(candidates) {
	case 0:
		return "", noRun(text)
	case 1:
		return candidates[0], nil
	}
	more := ""
	if len(candidates) > maxCandidates {
		candidates, more = candidates[:maxCandidates], ", ..."
	}
	return "", invalid("%q could be any of %s%s", text, strings.Join(candidates, ", "), more)
}

// submittedQuery leaves out the runs that tasks of type run have started.
const submittedQuery = runsQuery + " AND " + names.ParentAttribute + " IS NULL"

// lastSubmitted returns the id of the newest run that somebody has submitted. Visibility may not know yet
// what this gateway has just started.
func (g *Gateway) lastSubmitted(ctx context.Context) (string, error) {
	found, err := g.newest(ctx, submittedQuery, nil, 1, isAny)
	if err != nil {
		return "", fmt.Errorf("look for the last run: %w", err)
	}
	recent, known := g.recent.newest()
	if !known {
		if len(found) == 0 {
			return "", notFound("there are no runs yet")
		}
		return found[0].GetExecution().GetWorkflowId(), nil
	}
	if len(found) == 0 || found[0].GetExecution().GetWorkflowId() == recent {
		return recent, nil
	}
	desc, err := g.reader.describe(ctx, recent)
	if err == nil && positionOf(desc.GetWorkflowExecutionInfo()).before(positionOf(found[0])) {
		return recent, nil
	}
	return found[0].GetExecution().GetWorkflowId(), nil
}

// maxRecent is how many ids of runs a gateway remembers; visibility lags by
// moments, so it need not be many.
const maxRecent = 256

// recentRuns remembers the ids of the runs that this gateway submitted last. It
// is safe for concurrent use.
type recentRuns struct {
	mu  sync.Mutex
	ids []string // oldest first
}

func (r *recentRuns) add(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ids) == maxRecent {
		r.ids = slices.Delete(r.ids, 0, 1)
	}
	r.ids = append(r.ids, id)
}

func (r *recentRuns) newest() (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ids) == 0 {
		return "", false
	}
	return r.ids[len(r.ids)-1], true
}

// withPrefix returns the newest first.
func (r *recentRuns) withPrefix(prefix string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []string
	for _, id := range slices.Backward(r.ids) {
		if strings.HasPrefix(id, prefix) {
			found = append(found, id)
		}
	}
	return found
}
