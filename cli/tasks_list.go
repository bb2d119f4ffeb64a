package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

func newTasksList(sys *system) *cobra.Command {
	req := &v1.ListTasksRequest{}
	state := &output.Choice{Allowed: v1.TaskStates()}
	kind := &output.Choice{Allowed: v1.TaskTypes()}
	cmd := listCommand[*v1.ListedTask]{
		use: "list", short: "List the tasks of all runs, the newest run first",
		what: "tasks", limit: 100, most: 1000,
		fetch: func(ctx context.Context, a *client.Client, _ []string, size int32, token string) (listPage[*v1.ListedTask], error) {
			req.State, req.Type = state.Value, kind.Value
			return fillTaskPage(ctx, a, req, size, token)
		},
		rows: func(tasks []*v1.ListedTask) [][]string {
			rows := [][]string{{"RUN", "TASK", "STATE", "TYPE", "NODE", "ATTEMPT", "STARTED", "ENDED", "ERROR"}}
			for _, t := range tasks {
				rows = append(rows, []string{
					t.GetRun(), t.GetTask(), t.GetState(), t.GetType(), t.GetNode(), strconv.Itoa(int(t.GetAttempt())),
					sys.formatTime(t.GetStartedAt()), sys.formatTime(t.GetCompletedAt()), words.OneLine(t.GetError()),
				})
			}
			return rows
		},
		keep: 3,
	}.command(sys)
	cmd.Flags().Var(state, "state", "only tasks in this state")
	cmd.Flags().Var(kind, "type", "only tasks of this type")
	cmd.Flags().StringVar(&req.Workflow, "workflow", "", "only tasks of runs of this workflow")
	cmd.Flags().StringVar(&req.Node, "node", "", "only tasks whose newest attempt was given to this node")
	cmd.Flags().StringVar(&req.Run, "run", "", "only tasks of this run")
	cmd.Flags().StringVar(&req.Batch, "batch", "", "only tasks of the runs submitted with this --batch")
	return cmd
}

// maxTaskPages bounds the pages that one list reads. A page of a gateway may hold few tasks although more follow.
const maxTaskPages = 20

// fillTaskPage returns a page of size tasks, or fewer if there are no more or the matches are sparse.
func fillTaskPage(ctx context.Context, a *client.Client, req *v1.ListTasksRequest, size int32, token string) (*v1.ListTasksResponse, error) {
	all := &v1.ListTasksResponse{NextPageToken: token}
	for range maxTaskPages {
		req.PageSize, req.PageToken = size-int32(len(all.GetItems())), all.GetNextPageToken()
		page, err := client.Call(ctx, a, a.Tasks.ListTasks, req)
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
