package cli

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/cron"
)

func newSchedules(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schedules",
		Short: "List, show and control the schedules that start runs",
		Long: `List, show and control the schedules that start runs. A stored workflow whose definition
has a schedule is listed under its name:

  schedule: { cron: "0 2 * * MON-FRI", timezone: Europe/Berlin }

It is a Temporal Schedule with the id "workflow:NAME", which Temporal's own tools can also
manage. Other Temporal Schedules that start runs are listed under their ids.`,
		Args: subcommands,
		RunE: help,
	}
	cmd.AddCommand(
		newSchedulesList(sys), newSchedulesGet(sys), newSchedulesPause(sys), newSchedulesResume(sys),
		newSchedulesTrigger(sys), newSchedulesBackfill(sys), newSchedulesNext(sys),
	)
	return cmd
}

// scheduleTimes formats the times at which a schedule starts runs.
func scheduleTimes(crons []string, timezone string) string {
	text := strings.Join(crons, "; ")
	if timezone != "" {
		text += " " + timezone
	}
	return text
}

// scheduleState returns the state of a schedule, paused or active.
func scheduleState(paused bool) string {
	if paused {
		return v1.SchedulePaused
	}
	return v1.ScheduleActive
}

// listedScheduleState returns the state of a schedule, and whether it is late, in words.
func listedScheduleState(s *v1.Schedule) string {
	if s.GetLateSince() != nil {
		return scheduleState(s.GetPaused()) + ", " + v1.EventLate
	}
	return scheduleState(s.GetPaused())
}

// formatIn formats a time in a time zone for people.
func formatIn(t *timestamppb.Timestamp, timezone string) string {
	if t == nil {
		return ""
	}
	zone, err := cron.Zone(timezone)
	if err != nil { // a zone that only Temporal knows
		zone = time.UTC
	}
	return t.AsTime().In(zone).Format(zonedTime)
}

// zonedTime is the layout of the times of schedules, which are in the zone of the schedule or of the client.
const zonedTime = "Mon 2006-01-02 15:04:05 MST"

// firstTime returns the next time of a schedule, or nil if it will not start another run.
func firstTime(s *v1.Schedule) *timestamppb.Timestamp {
	if len(s.GetNextTimes()) == 0 {
		return nil
	}
	return s.GetNextTimes()[0]
}
