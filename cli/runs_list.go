package cli

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	v1 "switchyard/proto/switchyard/v1"
)

// runItem is a run in a list.
type runItem struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	State       string `json:"state"`
	Reason      string `json:"reason"`
	CreatedAt   string `json:"createdAt"`
	CompletedAt string `json:"completedAt,omitempty"`
	Problem     string `json:"problem,omitempty"`
	SubmittedBy string `json:"submittedBy,omitempty"`
	Batch       string `json:"batch,omitempty"`
}

func newRunsList(sys *system) *cobra.Command {
	req := &v1.ListRunsRequest{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, newest first",
		Args:  arguments(0, 0, ""),
	}
	state := &choice{allowed: v1.RunStates()}
	cmd.Flags().Var(state, "state", "only runs in this state")
	trigger := &choice{allowed: []string{"submit", "rerun", "retry", "child", "schedule", "manual"}}
	cmd.Flags().Var(trigger, "trigger", "only runs that were started so; manual means in Temporal")
	cmd.Flags().StringVar(&req.Name, "workflow", "", "only runs of this workflow")
	cmd.Flags().StringVar(&req.Node, "node", "", "only runs that sent a task to this node")
	cmd.Flags().StringVar(&req.Type, "type", "", "only runs with a task of this type")
	cmd.Flags().StringVar(&req.Label, "label", "", "only runs with a task that asks for this node label")
	cmd.Flags().StringVar(&req.Parent, "parent", "", "only runs that tasks of this run have started")
	cmd.Flags().StringVar(&req.Owner, "owner", "", "only runs that this user submitted, such as ann@laptop, and those that their tasks have started")
	cmd.Flags().StringVar(&req.Batch, "batch", "", "only runs that were submitted with this --batch")
	cmd.Flags().StringVar(&req.Text, "text", "", "only runs with one of these words in the description, the names of tasks or the error")
	var since string
	cmd.Flags().StringVar(&since, "since", "", "only runs submitted within this time, such as 10m, or since a time such as 2026-03-14T15:09:26Z")
	gateway, list := clientFlag(cmd), listFlags(cmd, "runs", 100, 1000)
	cmd.RunE = onGateway(gateway, func(ctx context.Context, a *api, _ []string) error {
		if err := list.check(); err != nil {
			return err
		}
		req.State, req.Trigger, req.PageSize, req.PageToken = state.value, trigger.value, list.limit, list.token
		if since != "" {
			var err error
			if req.Since, err = parseTime("since", since, sys.now()); err != nil {
				return err
			}
		}
		page, err := call(ctx, a, a.calls.ListRuns, req)
		if err != nil {
			return err
		}
		return writeList(sys, list, runItems(page), page.GetNextPageToken(), func(w io.Writer) error {
			rows := [][]string{{"ID", "WORKFLOW", "STATE", "CREATED"}}
			stuck := slices.ContainsFunc(page.GetItems(), func(run *v1.Run) bool { return run.GetProblem() != "" })
			if stuck {
				rows[0] = append(rows[0], "PROBLEM")
			}
			for _, run := range page.GetItems() {
				row := []string{run.GetId(), run.GetName(), run.GetState(), sys.at(run.GetCreatedAt())}
				if stuck {
					row = append(row, run.GetProblem())
				}
				rows = append(rows, row)
			}
			return writeTable(w, rows)
		})
	})
	return cmd
}

func runItems(page *v1.ListRunsResponse) []runItem {
	items := make([]runItem, 0, len(page.GetItems()))
	for _, run := range page.GetItems() {
		items = append(items, runItem{
			ID: run.GetId(), Name: run.GetName(), State: run.GetState(), Reason: run.GetReason(),
			CreatedAt: timestamp(run.GetCreatedAt()), CompletedAt: timestamp(run.GetCompletedAt()), Problem: run.GetProblem(),
			SubmittedBy: run.GetSubmittedBy(), Batch: run.GetBatch(),
		})
	}
	return items
}
