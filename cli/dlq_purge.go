package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newDLQPurge(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "purge RUN [TASK|--all]",
		Short: "Remove dead letters for good; the outcome of the run does not change",
	}
	chosen := oneOrAll(cmd)
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		run, task, err := chosen(args)
		if err != nil {
			return err
		}
		if run, err = sys.resolveRun(ctx, a, run); err != nil {
			return err
		}
		res, err := client.Call(ctx, a, a.Runs.PurgeDeadLetter, &v1.PurgeDeadLetterRequest{Run: run, Task: task})
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, res)
		}
		_, err = fmt.Fprintf(sys.screen, "purged %s of run %s\n", strings.Join(res.GetTasks(), ", "), res.GetRun())
		return err
	})
	return cmd
}
