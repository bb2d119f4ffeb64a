package cli

import (
	"context"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
)

// gatewayFlag adds --gateway.
func gatewayFlag(cmd *cobra.Command, usage string) *string {
	return cmd.Flags().String("gateway", "", usage)
}

// clientFlag adds --gateway to a command that always needs a gateway.
func clientFlag(cmd *cobra.Command) *string {
	return gatewayFlag(cmd, "URL of the gateway (default "+client.DefaultURL+")")
}

// onGateway returns the function of a command that calls do with a client of the gateway that its flag names.
func onGateway(gateway *string, do func(context.Context, *client.Client, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a, err := client.New(*gateway)
		if err != nil {
			return err
		}
		defer a.Close()
		return do(cmd.Context(), a, args)
	}
}
