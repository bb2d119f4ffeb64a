package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newNodesRemove(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove an offline node",
		Args:  arguments(1, 1, "NAME"),
	}
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		if _, err := client.Call(ctx, a, a.Nodes.RemoveNode, &v1.RemoveNodeRequest{Name: args[0]}); err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteJSON(sys.stdout, map[string]string{"name": args[0]})
		}
		_, err := fmt.Fprintf(sys.screen, "node %s is removed\n", args[0])
		return err
	})
	return cmd
}
