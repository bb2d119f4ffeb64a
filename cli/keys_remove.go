package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newKeysRemove(sys *system) *cobra.Command {
	req := &v1.RemoveKeyRequest{}
	cmd := &cobra.Command{
		Use:   "remove FINGERPRINT",
		Short: "Remove an SSH key; its connections end within seconds",
		Args:  arguments(1, 1, "FINGERPRINT"),
	}
	cmd.Flags().StringVar(&req.Name, "name", "", "owner of the key, for admins, if several users have it")
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		req.Fingerprint = args[0]
		res, err := client.Call(ctx, a, a.Keys.RemoveKey, req)
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, res.GetKey())
		}
		_, err = fmt.Fprintf(sys.screen, "key %s of %s is removed; its connections end within seconds\n", res.GetKey().GetFingerprint(), orNoOne(res.GetKey().GetName()))
		return err
	})
	return cmd
}
