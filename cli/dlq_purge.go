package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "switchyard/proto/switchyard/v1"
)

func newDLQPurge(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "purge RUN [TASK|--all]",
		Short: "Take dead letters off the list for good; the run stays as it ended",
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
		res, err := call(ctx, a, a.calls.PurgeDeadLetter, &v1.PurgeDeadLetterRequest{Run: run, Task: task})
		if err != nil {
			return err
		}
		if output.value == formatJSON {
			return writeMessage(sys.stdout, res)
		}
		_, err = fmt.Fprintf(sys.screen, "purged %s of run %s\n", strings.Join(res.GetTasks(), ", "), res.GetRun())
		return err
	})
	return cmd
}
