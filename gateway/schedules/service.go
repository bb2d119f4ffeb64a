package schedules

import (
	"cmp"
	"context"
	"errors"
	"sort"
	"time"

	"connectrpc.com/connect"
	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/schedules"
	"switchyard/gateway/auth"
	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// defaultPage is the number of schedules on a page if the request names no size.
const defaultPage = 100

// Index finds the newest executions of runs. It is safe for concurrent use.
type Index interface {
	// NewestOf returns the newest execution of each of the runs that exist, by run id.
	NewestOf(ctx context.Context, ids []string) (map[string]*workflowpb.WorkflowExecutionInfo, error)
}

// Service implements ScheduleService. It is safe for concurrent use.
type Service struct {
	Schedules *schedules.Schedules
	Index     Index
	Now       func() time.Time
}

var _ switchyardv1connect.ScheduleServiceHandler = Service{}

// defaultTimes is the number of listed times of a schedule if the request names no number.
const defaultTimes = 10

// ListSchedules lists the schedules by name.
func (s Service) ListSchedules(ctx context.Context, req *connect.Request[v1.ListSchedulesRequest]) (*connect.Response[v1.ListSchedulesResponse], error) {
	pages, err := paging.ListOf(req.Msg)
	if err != nil {
		return nil, err
	}
	var name, id string // of the first schedule of the page
	if token := req.Msg.GetPageToken(); token != "" {
		if name, id, err = pages.Place(token); err != nil {
			return nil, err
		}
	}
	all, err := s.Schedules.List(ctx)
	if err != nil {
		return nil, err
	}
	limit := cmp.Or(int(req.Msg.GetPageSize()), defaultPage)
	all = all[sort.Search(len(all), func(i int) bool {
		return cmp.Or(cmp.Compare(all[i].GetName(), name), cmp.Compare(all[i].GetId(), id)) >= 0
	}):]
	res := &v1.ListSchedulesResponse{Items: all[:min(len(all), limit)]}
	if len(all) > limit {
		res.NextPageToken = pages.Token(all[limit].GetName(), all[limit].GetId())
	}
	if err := s.addEnds(ctx, res.GetItems()...); err != nil {
		return nil, err
	}
	if err := s.Schedules.AddLateness(ctx, res.GetItems()...); err != nil {
		return nil, err
	}
	return connect.NewResponse(res), nil
}

// GetSchedule returns a schedule with its last runs and its next times.
func (s Service) GetSchedule(ctx context.Context, req *connect.Request[v1.GetScheduleRequest]) (*connect.Response[v1.GetScheduleResponse], error) {
	found, err := s.Schedules.Get(ctx, req.Msg.GetName())
	if err != nil {
		return nil, Error(req.Msg.GetName(), err)
	}
	if err := s.addEnds(ctx, found); err != nil {
		return nil, err
	}
	if err := s.Schedules.AddLateness(ctx, found); err != nil {
		return nil, err
	}
	return connect.NewResponse(&v1.GetScheduleResponse{Schedule: found}), nil
}

// addEnds adds the current state to the runs of schedules, as lists of runs show it.
func (s Service) addEnds(ctx context.Context, of ...*v1.Schedule) error {
	var ids []string
	for _, schedule := range of {
		for _, run := range schedule.GetRuns() {
			ids = append(ids, run.GetRunId())
		}
	}
	known, err := s.Index.NewestOf(ctx, ids)
	if err != nil {
		return err
	}
	for _, schedule := range of {
		for _, run := range schedule.GetRuns() {
			if info := known[run.GetRunId()]; info != nil {
				listed := runview.ListedRun(info)
				run.State, run.CompletedAt = listed.GetState(), listed.GetCompletedAt()
			}
		}
	}
	return nil
}

// UpdateSchedule pauses or resumes a schedule.
func (s Service) UpdateSchedule(ctx context.Context, req *connect.Request[v1.UpdateScheduleRequest]) (*connect.Response[v1.UpdateScheduleResponse], error) {
	changed, err := s.setPaused(ctx, req.Msg.GetName(), req.Msg.GetPaused(), req.Msg.GetReason())
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&v1.UpdateScheduleResponse{Schedule: changed}), nil
}

// PauseSchedule pauses a schedule: the clock starts no more runs.
func (s Service) PauseSchedule(ctx context.Context, req *connect.Request[v1.PauseScheduleRequest]) (*connect.Response[v1.PauseScheduleResponse], error) {
	changed, err := s.setPaused(ctx, req.Msg.GetName(), true, req.Msg.GetReason())
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&v1.PauseScheduleResponse{Schedule: changed}), nil
}

// ResumeSchedule resumes a paused schedule.
func (s Service) ResumeSchedule(ctx context.Context, req *connect.Request[v1.ResumeScheduleRequest]) (*connect.Response[v1.ResumeScheduleResponse], error) {
	changed, err := s.setPaused(ctx, req.Msg.GetName(), false, req.Msg.GetReason())
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&v1.ResumeScheduleResponse{Schedule: changed}), nil
}

func (s Service) setPaused(ctx context.Context, name string, paused bool, reason string) (*v1.Schedule, error) {
	said := v1.EventResumed
	if paused {
		said = v1.EventPaused
	}
	if by := auth.From(ctx).Name; by != "" {
		said += " by " + by
	}
	if reason != "" {
		said += ": " + reason
	}
	changed, err := s.Schedules.SetPaused(ctx, name, paused, said)
	return changed, Error(name, err)
}

// TriggerSchedule starts a run of a schedule now.
func (s Service) TriggerSchedule(ctx context.Context, req *connect.Request[v1.TriggerScheduleRequest]) (*connect.Response[v1.TriggerScheduleResponse], error) {
	triggered, err := s.Schedules.Trigger(ctx, req.Msg.GetName(), req.Msg.GetOverlap())
	if err != nil {
		return nil, Error(req.Msg.GetName(), err)
	}
	return connect.NewResponse(&v1.TriggerScheduleResponse{RunId: triggered.RunID, Outcome: triggered.Outcome}), nil
}

// BackfillSchedule starts the runs that a schedule has missed in a time span.
func (s Service) BackfillSchedule(ctx context.Context, req *connect.Request[v1.BackfillScheduleRequest]) (*connect.Response[v1.BackfillScheduleResponse], error) {
	from, to := req.Msg.GetFrom().AsTime(), req.Msg.GetTo().AsTime()
	switch {
	case !req.Msg.GetFrom().IsValid() || !req.Msg.GetTo().IsValid():
		return nil, errNoTime()
	case to.Before(from):
		return nil, rpcerror.Invalid("to (%s) is before from (%s)", to.Format(time.RFC3339), from.Format(time.RFC3339))
	case to.After(s.Now()):
		return nil, rpcerror.Invalid("to (%s) is in the future; a backfill only starts missed runs", to.Format(time.RFC3339))
	}
	times, existing, err := s.Schedules.Backfill(ctx, req.Msg.GetName(), from, to, req.Msg.GetOverlap())
	if err != nil {
		return nil, Error(req.Msg.GetName(), err)
	}
	return connect.NewResponse(&v1.BackfillScheduleResponse{Times: stamps(times), Existing: int32(existing)}), nil
}

// ListScheduleTimes lists the next times of a schedule.
func (s Service) ListScheduleTimes(ctx context.Context, req *connect.Request[v1.ListScheduleTimesRequest]) (*connect.Response[v1.ListScheduleTimesResponse], error) {
	from := s.Now()
	if at := req.Msg.GetFrom(); at != nil {
		if !at.IsValid() {
			return nil, errNoTime()
		}
		from = at.AsTime()
	}
	times, zone, err := s.Schedules.Times(ctx, req.Msg.GetName(), from, cmp.Or(int(req.Msg.GetCount()), defaultTimes))
	if err != nil {
		return nil, Error(req.Msg.GetName(), err)
	}
	return connect.NewResponse(&v1.ListScheduleTimesResponse{Times: stamps(times), Timezone: zone}), nil
}

// errNoTime returns the error for a timestamp out of range.
func errNoTime() error {
	return rpcerror.Invalid("a timestamp in the request is out of range; years must be 1 to 9999")
}

func stamps(times []time.Time) []*timestamppb.Timestamp {
	var all []*timestamppb.Timestamp
	for _, t := range times {
		all = append(all, timestamppb.New(t))
	}
	return all
}

// Error maps an error of the schedules about a name to the one that clients see.
func Error(name string, err error) error {
	switch {
	case errors.Is(err, schedules.ErrUnknown):
		return rpcerror.Missing("schedule", name, "")
	case errors.Is(err, schedules.ErrTooMany):
		return rpcerror.Invalid("%w; choose a shorter time span", err)
	case errors.Is(err, schedules.ErrNoTimes):
		return rpcerror.NotFound("workflow %s has no schedule; store it with `schedule: { cron: ... }` in its definition", name)
	}
	return err
}
