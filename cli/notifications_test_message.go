package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newNotificationsTest(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test NAME",
		Short: "Send a test message to a target, once, and show its answer",
		Args:  arguments(1, 1, "NAME"),
	}
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		res, err := client.Call(ctx, a, a.Notifications.TestNotificationTarget, &v1.TestNotificationTargetRequest{Name: args[0]})
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, res)
		}
		link := "its link, " + res.GetUrl() + ", is that of a run that does not exist"
		if res.GetUrl() == "" {
			link = "messages have no link to their run; start the gateways with --external-url URL, at which people open the page"
		}
		_, err = fmt.Fprintf(sys.screen, "notification target %s has accepted a test message: %s\n%s\n", args[0], res.GetAnswer(), link)
		return err
	})
	return cmd
}
