package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newNodesSet(sys *system) *cobra.Command {
	var flags termsFlags
	req := &v1.SetNodeTermsRequest{}
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Set on which terms a node takes tasks",
		Long: `Sets on which terms a node takes tasks, in place of the flags of its worker, until they are
cleared, even if the worker restarts. What is not set stays as it is. --only-for and
--reserve-for together say what the node is kept for, and replace all that was set before.
--only-for none, --while gaming=finish and --hours always undo a term.`,
		Args: arguments(1, 1, "NAME"),
	}
	flags.add(cmd.Flags())
	cmd.Flags().BoolVar(&req.Clear, "clear", false, "first clear all terms that were set before, so that the flags of the worker apply again")
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) (err error) {
		req.Name = args[0]
		if req.Terms, err = flags.terms(); err != nil {
			return err
		}
		res, err := client.Call(ctx, a, a.Nodes.SetNodeTerms, req)
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, res.GetNode())
		}
		_, err = fmt.Fprintf(sys.screen, "the terms of node %s are set\n", args[0])
		return err
	})
	return cmd
}
