package schedules

import (
	"math"
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/cron"
	"switchyard/workflows/dataconverter"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

// FromList returns a schedule of a list, or nil if it does not start runs by the clock.
func FromList(entry *schedulepb.ScheduleListEntry) *v1.Schedule {
	info := entry.GetInfo()
	if info.GetWorkflowType().GetName() != names.RunWorkflow || !HasTimes(info.GetSpec()) {
		return nil
	}
	s := identity(entry.GetScheduleId())
	addSpec(s, info.GetSpec())
	s.Paused = info.GetPaused()
	addNote(s, info.GetNotes())
	s.Runs = runsOf(info.GetRecentActions())
	if !s.Paused {
		s.NextTimes = info.GetFutureActionTimes()
	}
	return s
}

// FromDescription converts Temporal's description of a schedule. It returns nil if the schedule has no times.
func FromDescription(id string, d *workflowservice.DescribeScheduleResponse) *v1.Schedule {
	schedule, info := d.GetSchedule(), d.GetInfo()
	if !HasTimes(schedule.GetSpec()) {
		return nil
	}
	s := identity(id)
	if s.Workflow == "" {
		s.Workflow = workflowOf(schedule.GetAction().GetStartWorkflow().GetInput())
	}
	addSpec(s, schedule.GetSpec())
	s.Overlap = overlaps[schedule.GetPolicies().GetOverlapPolicy()]
	s.CatchUp = cron.Duration(schedule.GetPolicies().GetCatchupWindow().AsDuration())
	s.Paused = schedule.GetState().GetPaused()
	addNote(s, schedule.GetState().GetNotes())
	if schedule.GetState().GetLimitedActions() {
		remaining := count(schedule.GetState().GetRemainingActions())
		s.Remaining = &remaining
	}
	s.Runs = runsOf(info.GetRecentActions())
	if !s.Paused {
		s.NextTimes = info.GetFutureActionTimes()
	}
	s.Started, s.Missed, s.Skipped = count(info.GetActionCount()), count(info.GetMissedCatchupWindow()), count(info.GetOverlapSkipped())
	s.Waiting, s.Dropped = count(info.GetBufferSize()), count(info.GetBufferDropped())
	for _, open := range info.GetRunningWorkflows() {
		s.OpenRuns = append(s.OpenRuns, open.GetWorkflowId())
	}
	s.CreatedAt, s.UpdatedAt = info.GetCreateTime(), info.GetUpdateTime()
	return s
}

// identity returns a schedule with only its identity: the name, the id and, for a stored workflow,
// the workflow.
func identity(id string) *v1.Schedule {
	if name, ok := names.ParseStoredWorkflowID(id); ok {
		return &v1.Schedule{Name: name, Id: id, Workflow: name}
	}
	return &v1.Schedule{Name: id, Id: id}
}

// addNote adds what the note of a schedule holds.
func addNote(s *v1.Schedule, text string) {
	note := ParseNote(text)
	s.Note, s.ExpectedBy = note.Said, note.ExpectedBy
	if !note.StoredAt.IsZero() {
		s.StoredAt = timestamppb.New(note.StoredAt)
	}
}

func addSpec(s *v1.Schedule, spec *schedulepb.ScheduleSpec) {
	s.Cron, s.Except, s.Timezone = timesText(spec)
	s.Jitter = cron.Duration(spec.GetJitter().AsDuration())
	s.StartAt, s.EndAt = spec.GetStartTime(), spec.GetEndTime()
}

// runsOf returns the runs that a schedule has started, newest first.
func runsOf(actions []*schedulepb.ScheduleActionResult) []*v1.ScheduledRun {
	var runs []*v1.ScheduledRun
	for _, a := range slices.Backward(actions) {
		runs = append(runs, &v1.ScheduledRun{
			RunId: a.GetStartWorkflowResult().GetWorkflowId(), ScheduledAt: a.GetScheduleTime(), StartedAt: a.GetActualTime(),
		})
	}
	return runs
}

// workflowOf returns the workflow name in an input of Run, or "" if the input cannot be read.
func workflowOf(input *commonpb.Payloads) string {
	in := &historyv1.RunInput{}
	if err := dataconverter.New().FromPayloads(input, in); err != nil {
		return ""
	}
	if in.GetWorkflow() != "" {
		return in.GetWorkflow()
	}
	in, err := definition.Unpack(in)
	if err != nil {
		return ""
	}
	return in.GetDefinition().GetName()
}

// count clamps a count of Temporal to 32 bits.
func count(n int64) int32 { return int32(min(n, math.MaxInt32)) }
