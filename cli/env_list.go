package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	v1 "switchyard/proto/switchyard/v1"
)

func newEnvList(sys *system) *cobra.Command {
	return listCommand[*v1.Environment]{
		use: "list", short: "List the environments by name, including those being created",
		what: "environments", limit: 100, most: 1000,
		fetch: func(ctx context.Context, a *client.Client, _ []string, size int32, token string) (listPage[*v1.Environment], error) {
			return client.Call(ctx, a, a.Environments.ListEnvironments, &v1.ListEnvironmentsRequest{PageSize: size, PageToken: token})
		},
		rows: func(items []*v1.Environment) [][]string {
			rows := [][]string{{"NAME", "STATE", "VERSION", "KIND", "SIZE", "SOURCE", "BY", "READY", "NOTE"}}
			for _, e := range items {
				rows = append(rows, []string{
					e.GetName(), e.GetState(), strconv.Itoa(int(e.GetVersion())), e.GetKind(), environmentSize(e), environmentSource(e), e.GetCreatedBy(),
					sys.formatTime(e.GetReadyAt()), environmentNote(e),
				})
			}
			return rows
		},
		keep: 3,
	}.command(sys)
}
