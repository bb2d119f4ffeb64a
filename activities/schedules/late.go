package schedules

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/cron"
	"switchyard/workflows/names"
)

const (
	// lateFor is how long a schedule without other times is late.
	lateFor = 40 * 24 * time.Hour
	// latenessCalls is the number of schedules that AddLateness looks at, at the same time.
	latenessCalls = 8
)

// AddLateness sets LateSince of the schedules that are late. It counts completed runs and ignores the actions of the schedules, so a
// schedule that is paused or could start nothing counts as late, too.
func (s *Schedules) AddLateness(ctx context.Context, all ...*v1.Schedule) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(latenessCalls)
	for _, schedule := range all {
		first, due := lastExpected(schedule, s.now())
		if due.IsZero() {
			continue
		}
		group.Go(func() error {
			isDone, err := s.hasCompleted(ctx, schedule, first)
			if err == nil && !isDone {
				schedule.LateSince = timestamppb.New(due)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("look for late schedules: %w", err)
	}
	return nil
}

// hasCompleted reports whether a run has completed that a schedule has started for a time from first on. The retry of a run
// counts if it was started since.
func (s *Schedules) hasCompleted(ctx context.Context, schedule *v1.Schedule, first time.Time) (bool, error) {
	from := first.UTC().Format(time.RFC3339)
	res, err := s.service.CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: s.namespace, Query: fmt.Sprintf(
		"WorkflowType = '%s' AND ExecutionStatus = 'Completed' AND (%s = '%s' AND %s >= '%s' OR %s = '%s' AND %s = '%s' AND StartTime >= '%s')",
		names.RunWorkflow, scheduledByAttribute, quoted(schedule.GetId()), scheduledForAttribute, from,
		names.WorkflowAttribute, quoted(schedule.GetWorkflow()), names.TriggerAttribute, v1.TriggerRetry, from)})
	return res.GetCount() > 0, err
}

// quoted returns a text as it stands between the quotation marks of a query.
func quoted(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), `'`, `\'`)
}

// lastExpected returns the newest time by which a run of a schedule should have completed, and the first start time that such a run can
// have, in the day before. Both are zero if the definition was stored after that start time, or if the schedule has none.
func lastExpected(s *v1.Schedule, now time.Time) (first, due time.Time) {
	zone, zoneErr := cron.Zone(s.GetTimezone())
	hour, minute, ok := strings.Cut(s.GetExpectedBy(), ":")
	by, err := cron.Parse(minute + " " + hour + " * * *")
	if !ok || zoneErr != nil || err != nil {
		return time.Time{}, time.Time{}
	}
	var dues []time.Time // ascending
	for at := by.Next(now.Add(-lateFor), zone); !at.After(now); at = by.Next(at, zone) {
		dues = append(dues, at)
	}
	for i := len(dues) - 1; i > 0; i-- {
		for _, text := range s.GetCron() {
			e, err := cron.Parse(text)
			if err != nil {
				continue // it is cut: see commentOf
			}
			if at := e.Next(dues[i-1].Add(-time.Second), zone); !at.IsZero() && at.Before(dues[i]) && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
		switch {
		case first.IsZero():
		case first.Before(s.GetStoredAt().AsTime()):
			return time.Time{}, time.Time{}
		default:
			return first, dues[i]
		}
	}
	return time.Time{}, time.Time{}
}
