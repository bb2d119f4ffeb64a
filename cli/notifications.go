package cli

import "github.com/spf13/cobra"

func newNotifications(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "notifications",
		Short: "Store, list and test the targets that definitions name in notify",
		Long: `Store, list and test the targets that definitions name in notify. A target is what receives
messages about runs; its secrets are in the secret store.`,
		Args: subcommands,
		RunE: help,
	}
	cmd.AddCommand(newNotificationsPut(sys), newNotificationsGet(sys), newNotificationsList(sys), newNotificationsDelete(sys), newNotificationsTest(sys))
	return cmd
}
