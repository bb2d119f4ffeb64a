package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newTokensRevoke(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a token for good, on all gateways within a second",
		Long: `Revokes a token for good: within a second no gateway accepts it, and open streams end.
ID is that of ` + "`switchyard tokens list`" + `, or a name that only one active token has.`,
		Args: arguments(1, 1, "ID"),
	}
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		res, err := client.Call(ctx, a, a.Auth.RevokeToken, &v1.RevokeTokenRequest{Id: args[0]})
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, res.GetToken())
		}
		_, err = fmt.Fprintf(sys.screen, "token %s of %s is revoked\n", res.GetToken().GetId(), res.GetToken().GetName())
		return err
	})
	return cmd
}
