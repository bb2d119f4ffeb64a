package web

import (
	"context"
	"net/url"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// scheduleActions are the actions on schedules. Their field schedule is the name of the schedule.
var scheduleActions = []actionKind{
	{
		verb: "pause-schedule", label: "Pause", call: scheduleService + "PauseSchedule", asks: "Pause schedule %s? It starts no scheduled runs until it is resumed.", reason: true,
		do: func(ctx context.Context, s services, form url.Values) (string, string, error) {
			_, err := s.schedules.PauseSchedule(ctx, connect.NewRequest(&v1.PauseScheduleRequest{Name: form.Get("schedule"), Reason: form.Get(reasonField)}))
			return "Schedule " + form.Get("schedule") + " is paused.", "", err
		},
	},
	{
		verb: "resume-schedule", label: "Resume", call: scheduleService + "ResumeSchedule",
		do: func(ctx context.Context, s services, form url.Values) (string, string, error) {
			_, err := s.schedules.ResumeSchedule(ctx, connect.NewRequest(&v1.ResumeScheduleRequest{Name: form.Get("schedule")}))
			return "Schedule " + form.Get("schedule") + " has been resumed. Missed times are skipped.", "", err
		},
	},
	{
		verb: "trigger-schedule", label: "Start a run now", call: scheduleService + "TriggerSchedule",
		do: func(ctx context.Context, s services, form url.Values) (string, string, error) {
			name := form.Get("schedule")
			res, err := s.schedules.TriggerSchedule(ctx, connect.NewRequest(&v1.TriggerScheduleRequest{Name: name}))
			switch {
			case err != nil:
				return "", "", err
			case res.Msg.GetRunId() != "":
				return "Schedule " + name + " has started run " + res.Msg.GetRunId() + ".", runURL(res.Msg.GetRunId()), nil
			case res.Msg.GetOutcome() == v1.TriggerSkipped:
				return "Schedule " + name + " started no run because one is still open.", "", nil
			}
			return "The start waits for the open runs of schedule " + name + ".", "", nil
		},
	},
}
