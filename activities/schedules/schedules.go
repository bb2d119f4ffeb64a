package schedules

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// Errors that the methods of Schedules return, for errors.Is.
var (
	// ErrUnknown means that no schedule has that name.
	ErrUnknown = errors.New("unknown schedule")
	// ErrNoTimes means that the stored workflow has no schedule.
	ErrNoTimes = errors.New("workflow has no schedule")
	// ErrTooMany means that a span has more times than Temporal starts in one request.
	ErrTooMany = errors.New("too many times")
)

const (
	// listPage is the number of schedules in one page of a list.
	listPage = 1000
	// changePause is the time between two reads of a schedule that is about to change.
	changePause = 100 * time.Millisecond
	// changeWait bounds the wait for a change of a schedule or for the run of a trigger.
	changeWait = 10 * time.Second
	// busyWait bounds how long Describe retries while too many callers read schedules, and busyPause the back-off before a
	// retry.
	busyWait  = 20 * time.Second
	busyPause = time.Second
)

// Schedules gives access to the schedules of a Temporal namespace. It is safe for concurrent use.
type Schedules struct {
	service   workflowservice.WorkflowServiceClient
	namespace string
	now       func() time.Time
}

// New returns the schedules of a namespace.
func New(c client.Client, namespace string) *Schedules {
	return &Schedules{service: c.WorkflowService(), namespace: namespace, now: time.Now}
}

// Entries calls f with each schedule of the namespace, of any kind. Changes of a moment ago may be missing.
func (s *Schedules) Entries(ctx context.Context, f func(*schedulepb.ScheduleListEntry)) error {
	var token []byte
	for {
		page, err := s.service.ListSchedules(ctx, &workflowservice.ListSchedulesRequest{
			Namespace: s.namespace, MaximumPageSize: listPage, NextPageToken: token,
		})
		if err != nil {
			return err
		}
		for _, entry := range page.GetSchedules() {
			f(entry)
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return nil
		}
	}
}

// List returns the schedules that start runs, ordered by name.
func (s *Schedules) List(ctx context.Context) ([]*v1.Schedule, error) {
	var all []*v1.Schedule
	err := s.Entries(ctx, func(entry *schedulepb.ScheduleListEntry) {
		if found := FromList(entry); found != nil {
			all = append(all, found)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	slices.SortFunc(all, func(a, b *v1.Schedule) int {
		if c := strings.Compare(a.GetName(), b.GetName()); c != 0 {
			return c
		}
		return strings.Compare(a.GetId(), b.GetId())
	})
	return all, nil
}

// Describe returns Temporal's description of the schedule with an id. It returns NotFound for an id that a gRPC header
// cannot carry, because no schedule has such an id.
func (s *Schedules) Describe(ctx context.Context, id string) (*workflowservice.DescribeScheduleResponse, error) {
	if strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r > '~' }) {
		return nil, serviceerror.NewNotFoundf("there is no schedule with the id %q", id)
	}
	until := s.now().Add(busyWait)
	for pause := busyPause / 64; ; pause = min(2*pause, busyPause) {
		res, err := s.service.DescribeSchedule(ctx, &workflowservice.DescribeScheduleRequest{Namespace: s.namespace, ScheduleId: id})
		if _, busy := errors.AsType[*serviceerror.ResourceExhausted](err); !busy || s.now().After(until) {
			return res, err
		}
		select {
		case <-time.After(rand.N(pause)): // spread the retries of callers that were refused together
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Get returns the schedule of a name, or ErrUnknown or ErrNoTimes.
func (s *Schedules) Get(ctx context.Context, name string) (*v1.Schedule, error) {
	id, described, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	return FromDescription(id, described), nil
}

// find returns the schedule of a name: that of the stored workflow with the name, or else the schedule with that id.
func (s *Schedules) find(ctx context.Context, name string) (id string, described *workflowservice.DescribeScheduleResponse, err error) {
	ids := []string{name}
	if _, stored := names.ParseStoredWorkflowID(name); !stored {
		ids = []string{names.StoredWorkflowID(name), name}
	}
	missing := ErrUnknown
	for _, id := range ids {
		d, err := s.Describe(ctx, id)
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return "", nil, fmt.Errorf("read schedule %s: %w", name, err)
		}
		if d.GetSchedule().GetAction().GetStartWorkflow().GetWorkflowType().GetName() != names.RunWorkflow {
			continue
		}
		if HasTimes(d.GetSchedule().GetSpec()) {
			return id, d, nil
		}
		missing = ErrNoTimes
	}
	return "", nil, fmt.Errorf("%w: %s", missing, name)
}

// SetPaused pauses or resumes a schedule. said is a remark with who did it, and why.
func (s *Schedules) SetPaused(ctx context.Context, name string, paused bool, said string) (*v1.Schedule, error) {
	id, _, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	var changed *workflowservice.DescribeScheduleResponse
	err = s.Change(ctx, id, func(d *workflowservice.DescribeScheduleResponse) error {
		note := ParseNote(d.GetSchedule().GetState().GetNotes())
		note.Said = said
		patch := &schedulepb.SchedulePatch{Unpause: note.String()}
		if paused {
			patch = &schedulepb.SchedulePatch{Pause: note.String()}
		}
		if err := s.patch(ctx, id, patch); err != nil {
			return err
		}
		// Temporal applies the change with a short delay.
		changed, err = s.await(ctx, id, func(d *workflowservice.DescribeScheduleResponse) bool {
			return d.GetSchedule().GetState().GetPaused() == paused && d.GetSchedule().GetState().GetNotes() == note.String()
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("change schedule %s: %w", name, err)
	}
	return FromDescription(id, changed), nil
}

// await describes a schedule repeatedly until a condition holds or changeWait has passed. It returns the last
// description.
func (s *Schedules) await(ctx context.Context, id string, holds func(*workflowservice.DescribeScheduleResponse) bool) (*workflowservice.DescribeScheduleResponse, error) {
	for until := s.now().Add(changeWait); ; {
		d, err := s.Describe(ctx, id)
		if err != nil || holds(d) || s.now().After(until) {
			return d, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(changePause):
		}
	}
}

func (s *Schedules) patch(ctx context.Context, id string, patch *schedulepb.SchedulePatch) error {
	_, err := s.service.PatchSchedule(ctx, &workflowservice.PatchScheduleRequest{
		Namespace: s.namespace, ScheduleId: id, Patch: patch, RequestId: uuid.NewString(),
	})
	return err
}

// Triggered is the result of a trigger.
type Triggered struct {
	RunID   string // "" if no run has started yet
	Outcome string // one of the Trigger... outcomes of the package v1
}

// Trigger makes a schedule start a run now, a run of its own for each call. It waits up to changeWait for the outcome.
func (s *Schedules) Trigger(ctx context.Context, name, overlap string) (Triggered, error) {
	id, _, err := s.find(ctx, name)
	if err != nil {
		return Triggered{}, err
	}
	outcome := Triggered{Outcome: v1.TriggerQueued}
	err = s.Change(ctx, id, func(before *workflowservice.DescribeScheduleResponse) error {
		at, runID, err := s.freeTime(ctx, before)
		if err != nil {
			return err
		}
		err = s.patch(ctx, id, &schedulepb.SchedulePatch{TriggerImmediately: &schedulepb.TriggerImmediatelyRequest{
			OverlapPolicy: policyOf(overlap, enumspb.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED), ScheduledTime: timestamppb.New(at),
		}})
		if err != nil {
			return err
		}
		_, err = s.await(ctx, id, func(d *workflowservice.DescribeScheduleResponse) bool {
			for _, a := range d.GetInfo().GetRecentActions() {
				if a.GetStartWorkflowResult().GetWorkflowId() == runID {
					outcome = Triggered{runID, v1.TriggerStarted}
					return true
				}
			}
			if d.GetInfo().GetOverlapSkipped() > before.GetInfo().GetOverlapSkipped() {
				outcome = Triggered{Outcome: v1.TriggerSkipped}
				return true
			}
			return d.GetInfo().GetBufferSize() > before.GetInfo().GetBufferSize()
		})
		return err
	})
	if err != nil {
		return Triggered{}, fmt.Errorf("trigger schedule %s: %w", name, err)
	}
	return outcome, nil
}

// maxTimeTries bounds the number of seconds that freeTime tries.
const maxTimeTries = 60

// freeTime returns a scheduled time for a run that a trigger starts now, and the run id that Temporal derives from it. The id
// has a resolution of seconds, so the later of two triggers in the same second uses the next one. Whole minutes are left to the
// clock.
func (s *Schedules) freeTime(ctx context.Context, d *workflowservice.DescribeScheduleResponse) (at time.Time, runID string, err error) {
	at = s.now().UTC().Truncate(time.Second)
	for range maxTimeTries {
		runID = d.GetSchedule().GetAction().GetStartWorkflow().GetWorkflowId() + "-" + at.Format(time.RFC3339)
		_, err := s.service.DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
			Namespace: s.namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: runID},
		})
		switch {
		case isNotFound(err) && at.Second() != 0:
			return at, runID, nil
		case err != nil && !isNotFound(err):
			return at, "", err
		}
		at = at.Add(time.Second)
	}
	return at, "", fmt.Errorf("%d runs of it have been triggered within a minute; try again in a minute", maxTimeTries)
}

// times returns the times of a schedule after the time after and up to until, at most the first 1,000.
func (s *Schedules) times(ctx context.Context, id string, after, until time.Time) ([]time.Time, error) {
	res, err := s.service.ListScheduleMatchingTimes(ctx, &workflowservice.ListScheduleMatchingTimesRequest{
		Namespace: s.namespace, ScheduleId: id, StartTime: timestamppb.New(after), EndTime: timestamppb.New(until),
	})
	if err != nil {
		return nil, err
	}
	var times []time.Time
	for _, t := range res.GetStartTime() {
		times = append(times, t.AsTime())
	}
	return times, nil
}

// lastTime is the time up to which Temporal looks for times.
var lastTime = time.Date(2101, time.January, 1, 0, 0, 0, 0, time.UTC)

// firstSpan is the span in which Times looks for times first. Each further one is timesGrowth times as long.
const (
	firstSpan   = 2 * 24 * time.Hour
	timesGrowth = 8
)

// Times returns the first times of a schedule at or after from, at most count, and the schedule's time zone.
func (s *Schedules) Times(ctx context.Context, name string, from time.Time, count int) (times []time.Time, zone string, err error) {
	id, d, err := s.find(ctx, name)
	if err != nil {
		return nil, "", err
	}
	_, _, zone = timesText(d.GetSchedule().GetSpec())
	// Temporal computes all times of the span, up to 1,000.
	for span := firstSpan; ; span *= timesGrowth {
		until := from.Add(span)
		if until.After(lastTime) {
			until = lastTime
		}
		if times, err = s.times(ctx, id, from.Add(-time.Millisecond), until); err != nil {
			return nil, "", fmt.Errorf("list the times of schedule %s: %w", name, err)
		}
		if len(times) >= count || !until.Before(lastTime) {
			return times[:min(len(times), count)], zone, nil
		}
	}
}

func isNotFound(err error) bool {
	_, ok := errors.AsType[*serviceerror.NotFound](err)
	return ok
}
