package cli

import (
	"context"
	"sync"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// fakeSchedules is a ScheduleService with one schedule.
type fakeSchedules struct {
	switchyardv1connect.UnimplementedScheduleServiceHandler

	mu       sync.Mutex
	schedule *v1.Schedule
	outcome  *v1.TriggerScheduleResponse
	asked    []proto.Message
}

func (f *fakeSchedules) note(req proto.Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, req)
}

func (f *fakeSchedules) ListSchedules(_ context.Context, req *connect.Request[v1.ListSchedulesRequest]) (*connect.Response[v1.ListSchedulesResponse], error) {
	f.note(req.Msg)
	return connect.NewResponse(&v1.ListSchedulesResponse{Items: []*v1.Schedule{f.schedule}}), nil
}

func (f *fakeSchedules) GetSchedule(_ context.Context, req *connect.Request[v1.GetScheduleRequest]) (*connect.Response[v1.GetScheduleResponse], error) {
	f.note(req.Msg)
	return connect.NewResponse(&v1.GetScheduleResponse{Schedule: f.schedule}), nil
}

func (f *fakeSchedules) PauseSchedule(_ context.Context, req *connect.Request[v1.PauseScheduleRequest]) (*connect.Response[v1.PauseScheduleResponse], error) {
	f.note(req.Msg)
	return connect.NewResponse(&v1.PauseScheduleResponse{Schedule: f.schedule}), nil
}

func (f *fakeSchedules) ResumeSchedule(_ context.Context, req *connect.Request[v1.ResumeScheduleRequest]) (*connect.Response[v1.ResumeScheduleResponse], error) {
	f.note(req.Msg)
	return connect.NewResponse(&v1.ResumeScheduleResponse{Schedule: f.schedule}), nil
}

func (f *fakeSchedules) TriggerSchedule(_ context.Context, req *connect.Request[v1.TriggerScheduleRequest]) (*connect.Response[v1.TriggerScheduleResponse], error) {
	f.note(req.Msg)
	return connect.NewResponse(f.outcome), nil
}

func (f *fakeSchedules) BackfillSchedule(_ context.Context, req *connect.Request[v1.BackfillScheduleRequest]) (*connect.Response[v1.BackfillScheduleResponse], error) {
	f.note(req.Msg)
	return connect.NewResponse(&v1.BackfillScheduleResponse{Times: f.schedule.GetNextTimes()}), nil
}

func (f *fakeSchedules) ListScheduleTimes(_ context.Context, req *connect.Request[v1.ListScheduleTimesRequest]) (*connect.Response[v1.ListScheduleTimesResponse], error) {
	f.note(req.Msg)
	return connect.NewResponse(&v1.ListScheduleTimesResponse{Times: f.schedule.GetNextTimes(), Timezone: f.schedule.GetTimezone()}), nil
}
