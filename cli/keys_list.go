package cli

import (
	"context"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	v1 "switchyard/proto/switchyard/v1"
)

func newKeysList(sys *system) *cobra.Command {
	return listCommand[*v1.Key]{
		use: "list", short: "List your SSH keys, or everyone's if you are an admin",
		what: "keys", limit: 1000, most: 1000, keep: 4,
		fetch: func(ctx context.Context, a *client.Client, _ []string, size int32, token string) (listPage[*v1.Key], error) {
			return client.Call(ctx, a, a.Keys.ListKeys, &v1.ListKeysRequest{PageSize: size, PageToken: token})
		},
		rows: func(keys []*v1.Key) [][]string {
			rows := [][]string{{"FINGERPRINT", "NAME", "ROLE", "TYPE", "ADDED", "COMMENT"}}
			for _, k := range keys {
				rows = append(rows, []string{k.GetFingerprint(), k.GetName(), k.GetRole(), k.GetType(), sys.formatTime(k.GetCreatedAt()), k.GetComment()})
			}
			return rows
		},
	}.command(sys)
}
