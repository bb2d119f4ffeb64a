package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
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
	Trigger     string `json:"trigger,omitempty"`
	Parent      string `json:"parent,omitempty"`
	LateSince   string `json:"lateSince,omitempty"`
}

func newRunsList(sys *system) *cobra.Command {
	req := &v1.ListRunsRequest{}
	state := &output.Choice{Allowed: v1.RunStates()}
	trigger := &output.Choice{Allowed: v1.Triggers()}
	var since string
	cmd := listCommand[*v1.Run]{
		use: "list", short: "List runs, newest first",
		what: "runs", limit: 100, most: 1000,
		fetch: func(ctx context.Context, a *client.Client, _ []string, size int32, token string) (listPage[*v1.Run], error) {
			req.State, req.Trigger, req.PageSize, req.PageToken = state.Value, trigger.Value, size, token
			if since != "" {
				var err error
				if req.Since, err = parseTime("since", since, sys.now()); err != nil {
					return nil, err
				}
			}
			return client.Call(ctx, a, a.Runs.ListRuns, req)
		},
		item: func(run *v1.Run) (any, error) { return newRunItem(run), nil },
		rows: sys.runRows,
	}.command(sys)
	cmd.Flags().Var(state, "state", "only runs in this state")
	cmd.Flags().Var(trigger, "trigger", "only runs started in this way; manual means in Temporal")
	cmd.Flags().StringVar(&req.Name, "workflow", "", "only runs of this workflow")
	cmd.Flags().StringVar(&req.Node, "node", "", "only runs that sent a task to this node")
	cmd.Flags().StringVar(&req.Type, "type", "", "only runs with a task of this type")
	cmd.Flags().StringVar(&req.Label, "label", "", "only runs with a task that requires this node label")
	cmd.Flags().StringVar(&req.Parent, "parent", "", "only runs started by tasks of this run")
	cmd.Flags().StringVar(&req.Owner, "owner", "", "only runs submitted by this user, such as ann@laptop, and the runs started by their tasks")
	cmd.Flags().StringVar(&req.Batch, "batch", "", "only runs submitted with this --batch")
	cmd.Flags().StringVar(&req.Text, "text", "", "only runs with one of these words in the description, a task name or the error")
	cmd.Flags().BoolVar(&req.Late, "late", false, "only runs that took longer than their expectedWithin, or one of whose tasks did")
	cmd.Flags().BoolVar(&req.Totals, "totals", false, "also show the number of runs in each state, regardless of --state")
	cmd.Flags().StringVar(&since, "since", "", "only runs newer than a duration such as 10m, or submitted since a time such as 2026-03-14T15:09:26Z")
	return cmd
}

// totalsText returns the number of runs in each state, without empty states, in the order of the states.
func totalsText(totals map[string]int32) string {
	var parts []string
	for _, state := range v1.RunStates() {
		if n := totals[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	if len(parts) == 0 {
		return "no runs"
	}
	return strings.Join(parts, ", ")
}

// runRows returns the table of runs. The columns for late runs and for problems are left out if no run has a value.
func (s *system) runRows(runs []*v1.Run) [][]string {
	rows := [][]string{{"ID", "WORKFLOW", "STATE", "TRIGGER", "CREATED"}}
	hasLate := slices.ContainsFunc(runs, func(run *v1.Run) bool { return run.GetLateSince() != nil })
	if hasLate {
		rows[0] = append(rows[0], "LATE SINCE")
	}
	hasProblem := slices.ContainsFunc(runs, func(run *v1.Run) bool { return run.GetProblem() != "" })
	if hasProblem {
		rows[0] = append(rows[0], "PROBLEM")
	}
	for _, run := range runs {
		row := []string{run.GetId(), run.GetName(), run.GetState(), run.GetTrigger(), s.formatTime(run.GetCreatedAt())}
		if hasLate {
			row = append(row, s.formatTime(run.GetLateSince()))
		}
		if hasProblem {
			row = append(row, run.GetProblem())
		}
		rows = append(rows, row)
	}
	return rows
}

func newRunItem(run *v1.Run) runItem {
	return runItem{
		ID: run.GetId(), Name: run.GetName(), State: run.GetState(), Reason: run.GetReason(),
		CreatedAt: output.Timestamp(run.GetCreatedAt()), CompletedAt: output.Timestamp(run.GetCompletedAt()), Problem: run.GetProblem(),
		SubmittedBy: run.GetSubmittedBy(), Batch: run.GetBatch(), Trigger: run.GetTrigger(), Parent: run.GetParent(),
		LateSince: output.Timestamp(run.GetLateSince()),
	}
}
