package cli

import (
	"context"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	v1 "switchyard/proto/switchyard/v1"
)

func newNotificationsList(sys *system) *cobra.Command {
	return listCommand[*v1.NotificationTarget]{
		use: "list", short: "List the targets by name",
		what: "targets", limit: 100, most: 1000,
		fetch: func(ctx context.Context, a *client.Client, _ []string, size int32, token string) (listPage[*v1.NotificationTarget], error) {
			return client.Call(ctx, a, a.Notifications.ListNotificationTargets, &v1.ListNotificationTargetsRequest{PageSize: size, PageToken: token})
		},
		rows: func(items []*v1.NotificationTarget) [][]string {
			rows := [][]string{{"NAME", "TYPE", "STORED", "BY"}}
			for _, t := range items {
				rows = append(rows, []string{t.GetName(), t.GetType(), sys.formatTime(t.GetUpdatedAt()), t.GetUpdatedBy()})
			}
			return rows
		},
	}.command(sys)
}
