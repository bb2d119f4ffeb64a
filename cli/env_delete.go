package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newEnvDelete(sys *system) *cobra.Command {
	force := false
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete an environment, or cancel its creation",
		Long: `Deletes an environment. This is refused while open runs name it, unless --force is given:
running tasks keep it, and attempts that start later fail.

While a version is being created, its creation is cancelled instead, and the older
version is kept. The record of a failed creation is removed.`,
		Args: arguments(1, 1, "NAME"),
	}
	cmd.Flags().BoolVar(&force, "force", false, "delete it even if open runs name it")
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		res, err := client.Call(ctx, a, a.Environments.DeleteEnvironment, &v1.DeleteEnvironmentRequest{Name: args[0], Force: force})
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, res.GetEnvironment())
		}
		_, err = fmt.Fprintln(sys.screen, deletedText(res.GetEnvironment()))
		return err
	})
	return cmd
}

// deletedText describes the result of a request to delete an environment.
func deletedText(e *v1.Environment) string {
	switch {
	case e.GetCreation().GetState() == v1.EnvironmentCreating:
		return fmt.Sprintf("environment %s: the creation of version %d is cancelled; version %d is kept, and `switchyard env delete %[1]s` deletes it", e.GetName(), e.GetCreation().GetVersion(), e.GetVersion())
	case e.GetState() == v1.EnvironmentCreating:
		return fmt.Sprintf("the creation of environment %s is cancelled", e.GetName())
	case e.GetState() == v1.EnvironmentFailed:
		return fmt.Sprintf("the failed creation of environment %s is removed", e.GetName())
	}
	return fmt.Sprintf("environment %s is deleted; running tasks keep it", e.GetName())
}
