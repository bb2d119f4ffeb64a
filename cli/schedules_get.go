package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

func newSchedulesGet(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get NAME",
		Short: "Show a schedule, its next times and its last runs",
		Args:  arguments(1, 1, "NAME"),
	}
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		res, err := client.Call(ctx, a, a.Schedules.GetSchedule, &v1.GetScheduleRequest{Name: args[0]})
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, res.GetSchedule())
		}
		return sys.describeSchedule(sys.stdout, res.GetSchedule())
	})
	return cmd
}

// describeSchedule writes a schedule and its runs for people.
func (s *system) describeSchedule(w io.Writer, schedule *v1.Schedule) error {
	state := scheduleState(schedule.GetPaused())
	if note := words.OneLine(schedule.GetNote()); note != "" {
		state += ": " + note
	}
	rows := [][]string{{"name", schedule.GetName()}, {"Temporal id", schedule.GetId()}, {"workflow", schedule.GetWorkflow()}, {"state", state}}
	for i, text := range schedule.GetCron() {
		rows = append(rows, []string{map[bool]string{true: "times"}[i == 0], text})
	}
	for i, text := range schedule.GetExcept() {
		rows = append(rows, []string{map[bool]string{true: "but"}[i == 0], text})
	}
	optional := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	optional("time zone", schedule.GetTimezone())
	optional("from", s.formatTime(schedule.GetStartAt()))
	optional("until", s.formatTime(schedule.GetEndAt()))
	optional("jitter", schedule.GetJitter())
	optional("expected by", schedule.GetExpectedBy())
	optional("late since", formatIn(schedule.GetLateSince(), schedule.GetTimezone()))
	rows = append(rows, []string{"overlap", schedule.GetOverlap()}, []string{"catch up", schedule.GetCatchUp()})
	counts := []string{fmt.Sprintf("%d started", schedule.GetStarted())}
	for _, count := range []struct {
		n    int32
		what string
	}{
		{schedule.GetMissed(), "missed"}, {schedule.GetSkipped(), "skipped for an open run"}, {schedule.GetWaiting(), "waiting"}, {schedule.GetDropped(), "dropped"},
	} {
		if count.n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", count.n, count.what))
		}
	}
	rows = append(rows, []string{"runs", strings.Join(counts, ", ")})
	if schedule.Remaining != nil {
		rows = append(rows, []string{"remaining", strconv.Itoa(int(schedule.GetRemaining()))})
	}
	optional("open runs", strings.Join(schedule.GetOpenRuns(), ", "))
	optional("created", s.formatTime(schedule.GetCreatedAt()))
	optional("changed", s.formatTime(schedule.GetUpdatedAt()))
	for i, t := range schedule.GetNextTimes() {
		rows = append(rows, []string{map[bool]string{true: "next"}[i == 0], formatIn(t, schedule.GetTimezone())})
	}
	if err := output.WriteTable(w, rows); err != nil || len(schedule.GetRuns()) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	rows = [][]string{{"RUN", "STATE", "SCHEDULED", "STARTED", "ENDED"}}
	for _, r := range schedule.GetRuns() {
		rows = append(rows, []string{
			r.GetRunId(), r.GetState(), s.formatTime(r.GetScheduledAt()), s.formatTime(r.GetStartedAt()), s.formatTime(r.GetCompletedAt()),
		})
	}
	return output.WriteTable(w, rows)
}
