package cli

import "github.com/spf13/cobra"

func newRuns(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List, show, watch, control and repeat runs, and read their logs and events",
		Long: `List, show, watch, control and repeat runs, and read their logs and events.

RUN is the id of a run, a prefix that only one run has, or "last" for the run that you
submitted last to this gateway. It is never a run of a schedule or of another user.
TASK is a task, or an instance of a fanned-out task, such as "each[3]".`,
		Args: subcommands,
		RunE: help,
	}
	cmd.AddCommand(
		newRunsList(sys), newRunsGet(sys), newRunsWatch(sys), newRunsLogs(sys), newRunsEvents(sys), newRunsExplain(sys),
		newRunsInstances(sys), newRunsGraph(sys), newRunsTimeline(sys), newRunsReport(sys), newRunsArtifacts(sys),
		newRunsCancel(sys), newRunsKill(sys), newRunsPause(sys), newRunsResume(sys), newRunsStop(sys), newRunsRestart(sys), newRunsHold(sys), newRunsRelease(sys),
		newRunsApprove(sys), newRunsReject(sys), newRunsRetry(sys), newRunsRerun(sys),
		newRunsExec(sys), newRunsCp(sys), newRunsPortForward(sys),
	)
	return cmd
}
