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
	)
	cmd := &cobra.Command{
		Use:   "retry RUN",
		Short: "Go on with a run that has ended: what did not complete is done again",
		Long: `Goes on with a run that has ended, under its id and with its own definition as it
was then. Without --from everything that did not complete is done again, and what
completed is kept; with it, these tasks and all below them are, whatever became of
them. Another definition or input takes a new run: see submit and runs rerun.

What failed finds its checkpoint, and what --from names begins anew. An agent that
ended by max_cost or max_turns continues from its last turn with --max-cost or
--max-turns, from this generation on.`,
		Args: arguments(1, 1, "RUN"),
	}
	cmd.Flags().StringSliceVar(&from, "from", nil, "do this task and all below it again; may be repeated")
	agents.add(cmd.Flags())
	cmd.Flags().BoolVar(&watch, "watch", false, "follow the run to its end; the exit code is that of its end, and -o json prints the run")
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		limits, err := agents.limits()
		if err != nil {
			return err
		}
		run, err := sys.resolveOwnRun(a.URL, args[0])
		if err != nil {
			return err
		}
		res, err := client.Call(ctx, a, a.Runs.RetryRun, &v1.RetryRunRequest{Id: run, From: from, Limits: limits})
		if err != nil {
			return withRemedy(err, func() string {
				if a.HasEnded(ctx, run) {
					return fmt.Sprintf("--from TASK does that task and all below it again; `switchyard runs rerun %s` starts a new run", run)
				}
				return fmt.Sprintf("only a run that has ended can be retried: `switchyard runs cancel %[1]s` ends it, `switchyard dlq retry %[1]s TASK` puts a task of an open run back", run)
			})
		}
		switch {
		case format.Value == output.JSON && !watch:
			return output.WriteMessage(sys.stdout, res)
		case format.Value != output.JSON:
			again := "what did not complete"
			if len(from) > 0 {
				again = strings.Join(from, ", ") + " and what is below"
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
