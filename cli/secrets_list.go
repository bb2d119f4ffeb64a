package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	v1 "switchyard/proto/switchyard/v1"
)

func newSecretsList(sys *system) *cobra.Command {
	return listCommand[*v1.Secret]{
		use: "list", short: "List the secrets by name, without their values",
		what: "secrets", limit: 100, most: 1000,
		fetch: func(ctx context.Context, a *client.Client, _ []string, size int32, token string) (listPage[*v1.Secret], error) {
			return client.Call(ctx, a, a.Secrets.ListSecrets, &v1.ListSecretsRequest{PageSize: size, PageToken: token})
		},
		rows: func(items []*v1.Secret) [][]string {
			rows := [][]string{{"NAME", "ROLE", "VERSION", "SET", "BY", "KEY"}}
			for _, s := range items {
				rows = append(rows, []string{s.GetName(), s.GetRole(), strconv.Itoa(int(s.GetVersion())), sys.formatTime(s.GetSetAt()), s.GetSetBy(), s.GetKeyId()})
			}
			return rows
		},
	}.command(sys)
}
