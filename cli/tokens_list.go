package cli

import (
	"context"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	v1 "switchyard/proto/switchyard/v1"
)

func newTokensList(sys *system) *cobra.Command {
	return listCommand[*v1.Token]{
		use: "list", short: "List the tokens by name, with the time of their last use",
		what: "tokens", limit: 1000, most: 1000, keep: 4,
		fetch: func(ctx context.Context, a *client.Client, _ []string, size int32, token string) (listPage[*v1.Token], error) {
			return client.Call(ctx, a, a.Auth.ListTokens, &v1.ListTokensRequest{PageSize: size, PageToken: token})
		},
		rows: func(tokens []*v1.Token) [][]string {
			rows := [][]string{{"ID", "NAME", "ROLE", "STATE", "NODE", "CREATED", "EXPIRES", "LAST USED"}}
			for _, t := range tokens {
				expires := neverExpires
				if t.GetExpiresAt() != nil {
					expires = sys.formatTime(t.GetExpiresAt())
				}
				rows = append(rows, []string{
					t.GetId(), t.GetName(), t.GetRole(), t.GetState(), t.GetNode(), sys.formatTime(t.GetCreatedAt()), expires, sys.formatAge(t.GetLastUsedAt()),
				})
			}
			return rows
		},
	}.command(sys)
}
