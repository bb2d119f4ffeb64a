package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "switchyard/proto/switchyard/v1"
)

func newDLQRetry(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retry RUN [TASK|--all]",
		Short: "Put dead letters back with their attempts at 0; the run goes on from there",
	}
	chosen := oneOrAll(cmd)
	gateway, output := clientFlag(cmd), outputFlag(cmd, formatText, formatJSON)
	cmd.RunE = onGateway(gateway, func(ctx context.Context, a *api, args []string) error {
		run, task, err := chosen(args)
		if err != nil {
			return err
		}
		if run, err = sys.ownRun(a.url, run); err != nil {
			return err
		}
		res, err := call(ctx, a, a.calls.RetryDeadLetter, &v1.RetryDeadLetterRequest{Run: run, Task: task})
		if err != nil {
			return err
		}
		if output.value == formatJSON {
			return writeMessage(sys.stdout, res)
		}
		_, err = fmt.Fprintf(sys.screen, "run %s goes on with %s\n", res.GetRun(), strings.Join(res.GetTasks(), ", "))
		return err
	})
	return cmd
}
