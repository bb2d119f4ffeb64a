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

// What errors of Schedules are about, for errors.Is.
var (
	// ErrUnknown: there is no schedule of that name.
	ErrUnknown = errors.New("unknown schedule")
	// ErrNoTimes: the stored workflow has no schedule.
	ErrNoTimes = errors.New("workflow has no schedule")
	// ErrTooMany: a span of time holds more times than Temporal starts at once.
	ErrTooMany = errors.New("too many times")
)

const (
	// listPage is how many schedules one call lists.
	listPage = 1000
	// changePause is the wait between two looks at a schedule that is about to change.
	changePause = 100 * time.Millisecond
	// changeWait is how long a change of a schedule, or a trigger, is waited for.
	changeWait = 10 * time.Second
	// busyWait is the longest pause before a schedule is read again that too many callers read at once.
	busyWait = time.Second
)

// Schedules are the schedules of a namespace of Temporal. It is safe for concurrent use.
type Schedules struct {
	service   workflowservice.WorkflowServiceClient
	namespace string
	now       func() time.Time
}

// New returns the schedules of a namespace.
func New(c client.Client, namespace string) *Schedules {
	return &Schedules{service: c.WorkflowService(), namespace: namespace, now: time.Now}
}

// Entries calls f with each schedule of the namespace, of whatever kind. What was changed a moment ago may not show yet.
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

// List returns the schedules that start runs, by name.
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

// Describe returns what Temporal knows of a schedule by its id. No schedule has an id that a header of gRPC cannot carry.
func (s *Schedules) Describe(ctx context.Context, id string) (*workflowservice.DescribeScheduleResponse, error) {
	if strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r > '~' }) {
		return nil, serviceerror.NewNotFoundf("there is no schedule with the id %q", id)
	}
	for pause := busyWait / 64; ; pause *= 2 {
		res, err := s.service.DescribeSchedule(ctx, &workflowservice.DescribeScheduleRequest{Namespace: s.namespace, ScheduleId: id})
		if _, busy := errors.AsType[*serviceerror.ResourceExhausted](err); !busy || pause > busyWait {
			return res, err
		}
		select {
		case <-time.After(rand.N(pause)): // callers that were refused together do not come back together
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Get returns a schedule by its name.
func (s *Schedules) Get(ctx context.Context, name string) (*v1.Schedule, error) {
	id, described, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	return fromDescription(id, described), nil
}

// find returns the schedule of a name: of a stored workflow of that name, or else the one with that id.
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

// SetPaused pauses or resumes a schedule. said is who did, and why.
func (s *Schedules) SetPaused(ctx context.Context, name string, paused bool, said string) (*v1.Schedule, error) {
	id, d, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	note := ParseNote(d.GetSchedule().GetState().GetNotes())
	note.Said = said
	patch := &schedulepb.SchedulePatch{Unpause: note.String()}
	if paused {
		patch = &schedulepb.SchedulePatch{Pause: note.String()}
	}
	if err := s.patch(ctx, id, patch); err != nil {
		return nil, fmt.Errorf("change schedule %s: %w", name, err)
	}
	// Temporal takes the change a moment later.
	d, err = s.await(ctx, id, func(d *workflowservice.DescribeScheduleResponse) bool {
		return d.GetSchedule().GetState().GetPaused() == paused && d.GetSchedule().GetState().GetNotes() == note.String()
	})
	if err != nil {
		return nil, fmt.Errorf("change schedule %s: %w", name, err)
	}
	return fromDescription(id, d), nil
}

// await describes a schedule until a condition holds, or for some seconds, and returns the last description.
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

// Triggered is what has become of a trigger.
type Triggered struct {
	RunID   string // or "" if none has been started yet
	Outcome string // one of the outcomes of a trigger
}

// Trigger has a schedule start a run now, and waits some seconds for it.
func (s *Schedules) Trigger(ctx context.Context, name, overlap string) (Triggered, error) {
	id, before, err := s.find(ctx, name)
	if err != nil {
		return Triggered{}, err
	}
	at, runID, err := s.freeTime(ctx, before)
	if err != nil {
		return Triggered{}, fmt.Errorf("trigger schedule %s: %w", name, err)
	}
	err = s.patch(ctx, id, &schedulepb.SchedulePatch{TriggerImmediately: &schedulepb.TriggerImmediatelyRequest{
		OverlapPolicy: policyOf(overlap, enumspb.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED), ScheduledTime: timestamppb.New(at),
	}})
	if err != nil {
		return Triggered{}, fmt.Errorf("trigger schedule %s: %w", name, err)
	}
	outcome := Triggered{Outcome: v1.TriggerQueued}
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
	if err != nil {
		return Triggered{}, fmt.Errorf("trigger schedule %s: %w", name, err)
	}
	return outcome, nil
}

// maxTimeTries bounds the seconds that are tried for a run that a trigger starts.
const maxTimeTries = 60

// freeTime returns the time of a run that is started now, and the id that Temporal makes of it. Ids have seconds, so that
// of two triggers in one second the later one takes the next.
func (s *Schedules) freeTime(ctx context.Context, d *workflowservice.DescribeScheduleResponse) (at time.Time, runID string, err error) {
	at = s.now().UTC().Truncate(time.Second)
	for range maxTimeTries {
		runID = d.GetSchedule().GetAction().GetStartWorkflow().GetWorkflowId() + "-" + at.Format(time.RFC3339)
		_, err := s.service.DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
			Namespace: s.namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: runID},
		})
		if isNotFound(err) {
			return at, runID, nil
		}
		if err != nil {
			return at, "", err
		}
		at = at.Add(time.Second)
	}
	return at, "", fmt.Errorf("%d runs of it have been triggered within a minute", maxTimeTries)
}

// times returns the times of a schedule after one time and until another, the first 1,000.
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

// lastTime is where Temporal ends to look for times.
var lastTime = time.Date(2101, time.January, 1, 0, 0, 0, 0, time.UTC)

// Times returns the first times of a schedule from a time on, and its time zone.
func (s *Schedules) Times(ctx context.Context, name string, from time.Time, count int) (times []time.Time, zone string, err error) {
	id, d, err := s.find(ctx, name)
	if err != nil {
		return nil, "", err
	}
	times, err = s.times(ctx, id, from.Add(-time.Millisecond), lastTime)
	if err != nil {
		return nil, "", fmt.Errorf("list the times of schedule %s: %w", name, err)
	}
	return times[:min(len(times), count)], d.GetSchedule().GetSpec().GetTimezoneName(), nil
}

func isNotFound(err error) bool {
	_, ok := errors.AsType[*serviceerror.NotFound](err)
	return ok
}
