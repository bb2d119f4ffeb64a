package schedules

import (
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	"google.golang.org/protobuf/types/known/durationpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/cron"
	"switchyard/workflows/definition"
)

// SpecOf returns the times of the schedule of a checked definition. nil has no times.
//
// The calendars are in UTC, because Temporal's own are wrong on days on which the clocks of a zone change. The first calendar of
// each expression carries the expression and its zone as comment.
func SpecOf(s *v1.ScheduleDefinition) *schedulepb.ScheduleSpec {
	spec := &schedulepb.ScheduleSpec{}
	if s == nil {
		return spec
	}
	zone, err := cron.Zone(s.GetTimezone())
	if err != nil {
		zone = time.UTC // not for a checked definition
	}
	var others []*schedulepb.StructuredCalendarSpec
	for _, text := range s.GetCron() {
		e, err := cron.Parse(text)
		switch {
		case err != nil:
			spec.CronString = append(spec.CronString, text) // Temporal rejects it
		case e.Every > 0:
			spec.Interval = append(spec.Interval, &schedulepb.IntervalSpec{Interval: durationpb.New(e.Every)})
		default:
			var calendars []*schedulepb.StructuredCalendarSpec
			for _, c := range e.Calendars(zone) {
				calendars = append(calendars, calendarOf(c))
			}
			calendars[0].Comment = commentOf(e.String(), s.GetTimezone())
			spec.StructuredCalendar = append(spec.StructuredCalendar, calendars[0])
			others = append(others, calendars[1:]...)
		}
	}
	if len(spec.StructuredCalendar) == 0 {
		spec.TimezoneName = s.GetTimezone() // only to be shown
	}
	// A list of Temporal contains only the first calendars.
	spec.StructuredCalendar = append(spec.StructuredCalendar, others...)
	if jitter := definition.Jitter(s); jitter > 0 {
		spec.Jitter = durationpb.New(jitter)
	}
	return spec
}

// PoliciesOf returns the policies for overlapping and missed times of the schedule of a checked definition.
func PoliciesOf(s *v1.ScheduleDefinition) *schedulepb.SchedulePolicies {
	return &schedulepb.SchedulePolicies{
		OverlapPolicy: policyOf(s.GetOverlap(), enumspb.SCHEDULE_OVERLAP_POLICY_SKIP),
		CatchupWindow: durationpb.New(definition.CatchUp(s)),
	}
}

// overlaps maps Temporal's overlap policies to our words.
var overlaps = map[enumspb.ScheduleOverlapPolicy]string{
	enumspb.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED:     v1.OverlapSkip,
	enumspb.SCHEDULE_OVERLAP_POLICY_SKIP:            v1.OverlapSkip,
	enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE:      v1.OverlapBufferOne,
	enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL:      v1.OverlapQueue,
	enumspb.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER:    v1.OverlapReplace,
	enumspb.SCHEDULE_OVERLAP_POLICY_TERMINATE_OTHER: v1.OverlapTerminate,
	enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL:       v1.OverlapAllow,
}

// policyOf returns the policy of an overlap word, the inverse of overlaps. It returns otherwise for "".
func policyOf(overlap string, otherwise enumspb.ScheduleOverlapPolicy) enumspb.ScheduleOverlapPolicy {
	switch overlap {
	case v1.OverlapSkip:
		return enumspb.SCHEDULE_OVERLAP_POLICY_SKIP
	case v1.OverlapQueue:
		return enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL
	case v1.OverlapReplace:
		return enumspb.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER
	case v1.OverlapAllow:
		return enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL
	}
	return otherwise
}

// HasTimes reports whether a schedule starts anything by the clock.
func HasTimes(spec *schedulepb.ScheduleSpec) bool {
	return len(spec.GetStructuredCalendar())+len(spec.GetCalendar())+len(spec.GetCronString())+len(spec.GetInterval()) > 0
}
