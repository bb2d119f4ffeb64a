package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

func newVpsList(sys *system) *cobra.Command {
	req := &v1.ListVpsRequest{}
	status := &output.Choice{Allowed: v1.TaskStates()}
	cmd := listCommand[*v1.Vps]{
		use: "list", short: "List the machines, newest run first",
		what: "machines", limit: 100, most: 1000,
		fetch: func(ctx context.Context, a *client.Client, _ []string, size int32, token string) (listPage[*v1.Vps], error) {
			req.Status = status.Value
			return fillVpsPage(ctx, a, req, size, token)
		},
		rows: func(machines []*v1.Vps) [][]string {
			rows := [][]string{{"RUN", "TASK", "STATUS", "NODE", "IMAGE", "OWNER", "STARTED", "ENDED", "ERROR"}}
			for _, m := range machines {
				rows = append(rows, []string{
					m.GetId(), m.GetTask(), m.GetStatus(), m.GetNode(), cmp.Or(m.GetImage(), m.GetEnvironment(), m.GetVmImage()), m.GetSubmittedBy(),
					sys.formatTime(m.GetStartedAt()), sys.formatTime(m.GetCompletedAt()), words.OneLine(m.GetError()),
				})
			}
			return rows
		},
		keep: 3,
	}.command(sys)
	cmd.Flags().Var(status, "status", "only machines whose task is in this state")
	cmd.Flags().StringVar(&req.Node, "node", "", "only machines on this node")
	cmd.Flags().StringVar(&req.Name, "name", "", "only machines of this name")
	return cmd
}

// fillVpsPage returns a page of size machines, or fewer if there are no more or the matches are sparse.
func fillVpsPage(ctx context.Context, a *client.Client, req *v1.ListVpsRequest, size int32, token string) (*v1.ListVpsResponse, error) {
	all := &v1.ListVpsResponse{NextPageToken: token}
	for range maxTaskPages {
		req.PageSize, req.PageToken = size-int32(len(all.GetItems())), all.GetNextPageToken()
		page, err := client.Call(ctx, a, a.Vps.ListVps, req)
		if err != nil {
			return nil, err
		}
		all.Items = append(all.Items, page.GetItems()...)
		all.Warnings = append(all.Warnings, page.GetWarnings()...)
		all.NextPageToken = page.GetNextPageToken()
		if page.GetNextPageToken() == "" || len(all.GetItems()) >= int(size) {
			break
		}
	}
	return all, nil
}
