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

func newDLQRetry(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retry RUN [TASK|--all]",
		Short: "Retry dead letters with their attempts reset to 0; the run continues from there",
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
		res, err := client.Call(ctx, a, a.Runs.RetryDeadLetter, &v1.RetryDeadLetterRequest{Run: run, Task: task})
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, res)
		}
		_, err = fmt.Fprintf(sys.screen, "run %s continues with %s\n", res.GetRun(), strings.Join(res.GetTasks(), ", "))
		return err
	})
	return cmd
}
