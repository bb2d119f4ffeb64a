package runview

import (
	"context"
	"fmt"
	"sync"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// stuckPartsAge is how long a list of stuck parts is reused for all runs.
	stuckPartsAge = 5 * time.Second
	// maxStuckParts bounds that list. If more parts are stuck, the cause lies outside single runs.
	maxStuckParts = 100
	// stuckPartsQuery selects the parts of large fan-outs whose workflow task keeps failing.
	stuckPartsQuery = "WorkflowType = '" + names.FanOutWorkflow + "' AND ExecutionStatus = 'Running' AND " + names.ReportedProblemsAttribute + " IS NOT NULL"
)

// stuckParts caches the stuck parts of all runs according to visibility. The zero value is ready to use.
type stuckParts struct {
	mu    sync.Mutex
	asked time.Time
	found []*workflowpb.WorkflowExecutionInfo
}

// partProblem returns why a part of a large fan-out of a run makes no progress, or "" if all parts do.
func (r *Reader) partProblem(ctx context.Context, run string) string {
	for _, info := range r.findStuckParts(ctx) {
		id := info.GetExecution().GetWorkflowId()
		part, ok := names.ParseFanOutID(id)
		if !ok || part.Run != run {
			continue
		}
		desc, err := r.client.DescribeWorkflowExecution(ctx, id, info.GetExecution().GetRunId())
		if err != nil {
			r.log.Debug("a part with a problem cannot be described", "part", id, "error", err)
			continue
		}
		if problem := r.ownProblem(ctx, desc); problem != "" {
			return problemOf(part, problem)
		}
	}
	return ""
}

// ListPartProblems sets the problem of each open run without one to the problem of one of its parts.
func (r *Reader) ListPartProblems(ctx context.Context, runs []*v1.Run) {
	quiet := map[string]*v1.Run{}
	for _, run := range runs {
		if run.GetCompletedAt() == nil && run.GetProblem() == "" {
			quiet[run.GetId()] = run
		}
	}
	if len(quiet) == 0 {
		return
	}
	for _, info := range r.findStuckParts(ctx) {
		part, ok := names.ParseFanOutID(info.GetExecution().GetWorkflowId())
		if run := quiet[part.Run]; ok && run != nil && run.Problem == "" {
			run.Problem = problemOf(part, reportedProblem(info))
		}
	}
}

func problemOf(part names.FanOut, problem string) string {
	return fmt.Sprintf("instances from %s onwards: %s", names.InstanceName(part.Task, part.From), problem)
}

func (r *Reader) findStuckParts(ctx context.Context) []*workflowpb.WorkflowExecutionInfo {
	s := &r.stuckParts
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.asked) < stuckPartsAge {
		return s.found
	}
	res, err := r.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: r.namespace, Query: stuckPartsQuery, PageSize: maxStuckParts,
	})
	if err != nil {
		r.log.Debug("cannot list stuck parts in visibility", "error", err)
		return s.found
	}
	s.asked, s.found = time.Now(), res.GetExecutions()
	return s.found
}
