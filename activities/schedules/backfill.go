package schedules

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// maxBackfill is how many times a backfill may have: Temporal lists no more, and lets no more wait.
const maxBackfill = 1000

// Backfill has a schedule start the runs for those times of a span, both ends included, that have none yet. It returns
// these times, and how many times have a run. The error is ErrTooMany for a span of more than 999 times.
func (s *Schedules) Backfill(ctx context.Context, name string, from, to time.Time, overlap string) (started []time.Time, existing int, err error) {
	id, d, err := s.find(ctx, name)
	if err != nil {
		return nil, 0, err
	}
	times, err := s.times(ctx, id, from.Add(-time.Millisecond), to)
	if err != nil {
		return nil, 0, fmt.Errorf("backfill schedule %s: %w", name, err)
	}
	if len(times) >= maxBackfill {
		return nil, 0, fmt.Errorf("%w: the span has %d times of schedule %s or more", ErrTooMany, maxBackfill, name)
	}
	jitter := d.GetSchedule().GetSpec().GetJitter().AsDuration()
	had, err := s.startedFor(ctx, id, from, to)
	if err != nil {
		return nil, 0, fmt.Errorf("backfill schedule %s: %w", name, err)
	}
	hasRun := func(t time.Time) bool {
		return slices.ContainsFunc(had, func(at time.Time) bool { return !at.After(t) && t.Sub(at) <= jitter })
	}
	requests := backfillRequests(times, from, hasRun, policyOf(overlap, enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL))
	if len(requests) == 0 {
		return nil, len(times), nil
	}
	if err := s.patch(ctx, id, &schedulepb.SchedulePatch{BackfillRequest: requests}); err != nil {
		return nil, 0, fmt.Errorf("backfill schedule %s: %w", name, err)
	}
	started = slices.DeleteFunc(slices.Clone(times), hasRun)
	return started, len(times) - len(started), nil
}

// backfillRequests returns the spans of the times that have no run. Temporal takes of a span what comes at its start or later,
// before jitter, and until its end, with jitter, so that a span begins right after the time before it.
func backfillRequests(times []time.Time, from time.Time, hasRun func(time.Time) bool, policy enumspb.ScheduleOverlapPolicy) []*schedulepb.BackfillRequest {
	var requests []*schedulepb.BackfillRequest
	start, open := from, false
	for _, t := range times {
		switch {
		case hasRun(t):
			start, open = t.Add(time.Millisecond), false
		case open:
			requests[len(requests)-1].EndTime = timestamppb.New(t)
		default:
			requests, open = append(requests, &schedulepb.BackfillRequest{
				StartTime: timestamppb.New(start), EndTime: timestamppb.New(t), OverlapPolicy: policy,
			}), true
		}
	}
	return requests
}

// Search attributes that Temporal gives what a schedule has started.
const (
	scheduledByAttribute  = "TemporalScheduledById"
	scheduledForAttribute = "TemporalScheduledStartTime"
)

// startedFor returns the times, before jitter, for which a schedule has started runs in a span of time. What was started a
// moment ago may not show yet.
func (s *Schedules) startedFor(ctx context.Context, id string, from, to time.Time) (times []time.Time, err error) {
	query := fmt.Sprintf(`%s = '%s' AND %s BETWEEN '%s' AND '%s'`, scheduledByAttribute, strings.ReplaceAll(strings.ReplaceAll(id, `\`, `\\`), `'`, `\'`),
		scheduledForAttribute, from.UTC().Truncate(time.Second).Format(time.RFC3339), to.UTC().Format(time.RFC3339))
	var token []byte
	for {
		page, err := s.service.ListWorkflowExecutions(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: s.namespace, PageSize: listPage, NextPageToken: token, Query: query,
		})
		if err != nil {
			return nil, err
		}
		for _, info := range page.GetExecutions() {
			var at time.Time
			payload := info.GetSearchAttributes().GetIndexedFields()[scheduledForAttribute]
			if err := converter.GetDefaultDataConverter().FromPayload(payload, &at); err == nil {
				times = append(times, at)
			}
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return times, nil
		}
	}
}
