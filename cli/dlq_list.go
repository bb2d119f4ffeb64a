package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

func newDLQList(sys *system) *cobra.Command {
	req := &v1.ListDeadLettersRequest{}
	cmd := listCommand[*v1.DeadLetter]{
		use: "list", short: "List dead letters, newest first",
		what: "runs' dead letters", limit: 100, most: 1000,
		fetch: func(ctx context.Context, a *client.Client, _ []string, size int32, token string) (listPage[*v1.DeadLetter], error) {
			req.PageSize, req.PageToken = size, token
			return client.Call(ctx, a, a.Runs.ListDeadLetters, req)
		},
		rows: func(letters []*v1.DeadLetter) [][]string {
			rows := [][]string{{"RUN", "TASK", "TYPE", "ATTEMPTS", "NODE", "SINCE", "ERROR"}}
			for _, d := range letters {
				node, spent := "", 0
				for _, a := range d.GetAttempts() {
					node = a.GetNode()
					if a.GetState() != v1.AttemptMoved {
						spent++
					}
				}
				rows = append(rows, []string{
					d.GetRun(), d.GetTask(), d.GetType(), strconv.Itoa(spent), node, sys.formatTime(d.GetDeadLetteredAt()), words.OneLine(d.GetError()),
				})
			}
			return rows
		},
	}.command(sys)
	cmd.Flags().StringVar(&req.Run, "run", "", "only dead letters of this run")
	cmd.Flags().StringVar(&req.Type, "type", "", "only tasks of this type")
	cmd.Flags().StringVar(&req.Node, "node", "", "only tasks whose last attempt was on this node")
	return cmd
}
