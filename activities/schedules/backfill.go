package schedules

import (
	"context"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/workflows/dataconverter"
)

// maxBackfill is the maximum number of times in a backfill: Temporal lists no more times and buffers no more runs.
const maxBackfill = 1000

// Backfill makes a schedule start the missing runs for its times in a span, both ends included. It returns the times for which
// it starts runs, and the number of times that already have a run. It returns ErrTooMany if the span has more than 999 times.
func (s *Schedules) Backfill(ctx context.Context, name string, from, to time.Time, overlap string) (started []time.Time, existing int, err error) {
	id, _, err := s.find(ctx, name)
	if err != nil {
		return nil, 0, err
	}
	err = s.Change(ctx, id, func(d *workflowservice.DescribeScheduleResponse) error {
		times, err := s.times(ctx, id, from.Add(-time.Millisecond), to)
		if err != nil {
			return err
		}
		if len(times) >= maxBackfill {
			return fmt.Errorf("%w: the span has %d times of schedule %s or more", ErrTooMany, maxBackfill, name)
		}
		jitter := d.GetSchedule().GetSpec().GetJitter().AsDuration()
		had, err := s.startedFor(ctx, id, from, to)
		if err != nil {
			return err
		}
		hasRun := func(t time.Time) bool {
			return slices.ContainsFunc(had, func(at time.Time) bool { return !at.After(t) && t.Sub(at) <= jitter })
		}
		requests := backfillRequests(times, from, hasRun, policyOf(overlap, enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL))
		started = slices.DeleteFunc(slices.Clone(times), hasRun)
		existing = len(times) - len(started)
		if len(requests) == 0 {
			return nil
		}
		return s.patch(ctx, id, &schedulepb.SchedulePatch{BackfillRequest: requests})
	})
	if err != nil {
		return nil, 0, fmt.Errorf("backfill schedule %s: %w", name, err)
	}
	return started, existing, nil
}

// backfillRequests returns spans that cover exactly the times without a run. Temporal compares the start of a span with the
// time before jitter, and its end with the time after jitter, so each span begins right after the preceding time with a run.
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

// Search attributes that Temporal sets on the workflows that a schedule starts.
const (
	scheduledByAttribute  = "TemporalScheduledById"
	scheduledForAttribute = "TemporalScheduledStartTime"
)

// startedFor returns the times, before jitter, within a span for which a schedule has started runs. Runs that were started a
// moment ago may be missing.
func (s *Schedules) startedFor(ctx context.Context, id string, from, to time.Time) (times []time.Time, err error) {
	query := fmt.Sprintf(`%s = '%s' AND %s BETWEEN '%s' AND '%s'`, scheduledByAttribute, quoted(id),
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
			if err := dataconverter.New().FromPayload(payload, &at); err == nil {
				times = append(times, at)
			}
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return times, nil
		}
	}
}
