package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	v1 "switchyard/proto/switchyard/v1"
)

func newRunsCancel(sys *system) *cobra.Command {
	req := &v1.CancelRunRequest{}
	cmd := &cobra.Command{
		Use:   "cancel RUN",
		Short: "Cancel a run: what waits is cancelled, what runs is stopped",
		Args:  arguments(1, 1, "RUN"),
	}
	cmd.Flags().StringVar(&req.Reason, "reason", "", "why, for people")
	gateway, output := clientFlag(cmd), outputFlag(cmd, formatText, formatJSON)
	cmd.RunE = onGateway(gateway, func(ctx context.Context, a *api, args []string) error {
		req.Id = args[0]
		res, err := call(ctx, a, a.calls.CancelRun, req)
		if err != nil {
			return err
		}
		if output.value == formatJSON {
			return writeJSON(sys.stdout, map[string]string{"id": res.GetId()})
		}
		_, err = fmt.Fprintf(sys.screen, "run %s is being cancelled\n", res.GetId())
		return err
	})
	return cmd
}
