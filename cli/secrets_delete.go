package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newSecretsDelete(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a secret; running tasks keep its value",
		Args:  arguments(1, 1, "NAME"),
	}
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		res, err := client.Call(ctx, a, a.Secrets.DeleteSecret, &v1.DeleteSecretRequest{Name: args[0]})
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, res.GetSecret())
		}
		_, err = fmt.Fprintf(sys.screen, "secret %s is deleted; running tasks keep its value\n", args[0])
		return err
	})
	return cmd
}
