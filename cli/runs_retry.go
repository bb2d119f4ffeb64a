package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/follow"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newRunsRetry(sys *system) *cobra.Command {
	var (
		from   []string
		agents agentLimitFlags
		watch  bool
		only   bool
	)
	cmd := &cobra.Command{
		Use:   "retry RUN",
		Short: "Continue a run that has ended by retrying the tasks that did not complete",
		Long: `Continues a run that has ended, under the same id and with its original definition.
Without --from, the tasks that did not complete are run again, and completed ones are
kept; with --from, the given tasks and all tasks below them are run again, whatever their
outcome. The tasks of finally run again in any case, and with --finally-only nothing else
does. To change the definition or the input, start a new run: see submit and runs rerun.

Failed tasks continue from their checkpoints, and tasks named by --from start afresh. An
agent that ended by max_cost or max_turns continues from its last turn with the limits of
--max-cost or --max-turns, from this generation on.`,
		Args: arguments(1, 1, "RUN"),
	}
	cmd.Flags().StringSliceVar(&from, "from", nil, "run this task and all tasks below it again; may be repeated")
	cmd.Flags().BoolVar(&only, "finally-only", false, "run only the tasks of finally, for example after a run was ended by force")
	cmd.MarkFlagsMutuallyExclusive("from", "finally-only")
	agents.add(cmd.Flags())
	cmd.Flags().BoolVar(&watch, "watch", false, "follow the run to its end; the exit code tells whether it completed, and -o json prints the run")
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		limits, err := agents.limits()
		if err != nil {
			return err
		}
		run, err := sys.resolveRun(ctx, a, args[0])
		if err != nil {
			return err
		}
		res, err := client.Call(ctx, a, a.Runs.RetryRun, &v1.RetryRunRequest{Id: run, From: from, Limits: limits, FinallyOnly: only})
		if err != nil {
			return withRemedy(err, func() string {
				if a.HasEnded(ctx, run) {
					return fmt.Sprintf("--from TASK runs that task and all tasks below it again; `switchyard runs rerun %s` starts a new run", run)
				}
				return fmt.Sprintf("only a run that has ended can be retried: `switchyard runs cancel %[1]s` ends it, `switchyard dlq retry %[1]s TASK` retries a task of an open run", run)
			})
		}
		switch {
		case format.Value == output.JSON && !watch:
			return output.WriteMessage(sys.stdout, res)
		case format.Value != output.JSON:
			again := "the tasks that did not complete"
			switch {
			case only:
				again = "finally"
			case len(from) > 0:
				again = strings.Join(from, ", ") + " and all tasks below"
			}
			fmt.Fprintf(sys.screen, "run %s continues with %s, generation %d\n", res.GetId(), again, res.GetGeneration())
		}
		if !watch {
			return nil
		}
		return (&follow.Watcher{Terminal: sys.terminal(), Client: a, Run: res.GetId(), Format: format.Value}).Watch(ctx)
	})
	return cmd
}
