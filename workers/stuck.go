package workers

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"switchyard/workflows/names"
)

// stuckInterval is how often visibility is queried for runs that make no progress.
const stuckInterval = 15 * time.Second

// stuckQuery matches the runs, and the parts of fan-outs, whose workflow task fails repeatedly.
const stuckQuery = "WorkflowType IN ('" + names.RunWorkflow + "', '" + names.FanOutWorkflow + "')" +
	" AND ExecutionStatus = 'Running' AND " + names.ReportedProblemsAttribute + " IS NOT NULL"

// stuckRuns counts the runs that make no progress, for metrics and the log. Its owner calls watch in a goroutine; runs
// is safe for concurrent use.
type stuckRuns struct {
	client client.Client
	log    *slog.Logger
	count  atomic.Int64
}

// runs returns the number of such runs at the last query.
func (s *stuckRuns) runs() int { return int(s.count.Load()) }

// watch updates the count until ctx ends.
func (s *stuckRuns) watch(ctx context.Context) {
	ticker := time.NewTicker(stuckInterval)
	defer ticker.Stop()
	for {
		s.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (s *stuckRuns) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	res, err := s.client.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: stuckQuery})
	if err != nil {
		s.log.Debug("the runs that make no progress could not be counted", "error", err)
		return
	}
	if before := s.count.Swap(res.GetCount()); res.GetCount() > before {
		s.log.Warn("runs make no progress: their workflow tasks fail repeatedly; `switchyard runs list` names them", "runs", res.GetCount())
	}
}
