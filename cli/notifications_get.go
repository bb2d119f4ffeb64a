package cli

import (
	"context"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newNotificationsGet(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get NAME",
		Short: "Show a target; its secrets appear as store:NAME",
		Args:  arguments(1, 1, "NAME"),
	}
	clientFlag(cmd)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		res, err := client.Call(ctx, a, a.Notifications.GetNotificationTarget, &v1.GetNotificationTargetRequest{Name: args[0]})
		if err != nil {
			return err
		}
		return output.WriteMessage(sys.stdout, res.GetTarget())
	})
	return cmd
}
