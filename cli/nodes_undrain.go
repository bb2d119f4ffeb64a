package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newNodesUndrain(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use: "undrain NAME", Aliases: []string{"uncordon"},
		Short: "Put a draining node back into service",
		Args:  arguments(1, 1, "NAME"),
	}
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		res, err := client.Call(ctx, a, a.Nodes.UndrainNode, &v1.UndrainNodeRequest{Name: args[0]})
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, res.GetNode())
		}
		_, err = fmt.Fprintf(sys.screen, "node %s is %s\n", res.GetNode().GetName(), res.GetNode().GetState())
		return err
	})
	return cmd
}
