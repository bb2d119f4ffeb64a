package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newSecretsSet(sys *system) *cobra.Command {
	role := &output.Choice{Value: v1.RoleOperator, Allowed: []string{v1.RoleUser, v1.RoleOperator, v1.RoleAdmin}}
	var file string
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Store a secret under a name, replacing an older one",
		Long: `Stores a secret under a name, replacing an older one. The value is read from standard
input, without the final line break; from a file with --from-file; or from the terminal,
which does not show it. Attempts that start later get the new value; running attempts
keep the old one.`,
		Args: func(_ *cobra.Command, args []string) error {
			// The message must not repeat an argument that may be the value.
			if len(args) > 1 || len(args) == 1 && strings.Contains(args[0], "=") {
				return &exit.Error{Code: exit.CodeUsage,
					Err:  fmt.Errorf("a value cannot be an argument: every process on this machine could see it, and the shell would record it in its history"),
					Hint: "pipe it in, as in `switchyard secrets set NAME < FILE`, or type it when asked; if it was a real secret, change it"}
			}
			return arguments(1, 1, "NAME")(nil, args)
		},
	}
	cmd.Flags().Var(role, "role", "lowest role whose runs may use it")
	cmd.Flags().StringVar(&file, "from-file", "", "file whose exact content is the value")
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		var value []byte
		var err error
		if file != "" {
			value, err = readSecretFile(file)
		} else {
			value, err = sys.readSecret(ctx, "value of "+args[0]+" (hidden): ")
		}
		switch {
		case err != nil:
			return err
		case len(value) == 0:
			return exit.Usagef("the value of %s is empty; pipe it in, or name a file with --from-file", args[0])
		}
		res, err := client.Call(ctx, a, a.Secrets.SetSecret, &v1.SetSecretRequest{Name: args[0], Value: value, Role: role.Value})
		if err != nil {
			return err
		}
		s := res.GetSecret()
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, s)
		}
		_, err = fmt.Fprintf(sys.screen, "secret %s is set (version %d) for runs of the role %s and above\n", s.GetName(), s.GetVersion(), s.GetRole())
		return err
	})
	return cmd
}
