package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	"switchyard/cli/tui"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

func newRunsInstances(sys *system) *cobra.Command {
	state := &output.Choice{Allowed: v1.TaskStates()}
	cmd := listCommand[*v1.Instance]{
		use: "instances RUN TASK", short: "List the instances of a fanned-out task by number, page by page",
		args: arguments(2, 2, "RUN TASK"),
		what: "instances", limit: 1000, most: 10_000,
		fetch: func(ctx context.Context, a *client.Client, args []string, size int32, token string) (listPage[*v1.Instance], error) {
			run, err := sys.resolveRun(ctx, a, args[0])
			if err != nil {
				return nil, err
			}
			page, err := a.Instances(ctx, &v1.ListInstancesRequest{Id: run, Task: args[1], PageSize: size, PageToken: token, State: state.Value})
			if err != nil {
				return nil, withRemedy(err, func() string { return "`switchyard runs get " + run + "` shows which tasks have fanned out" })
			}
			if len(page.GetItems()) == 0 && state.Value != "" && token == "" {
				return page, sys.printOtherStates(ctx, a, run, args[1], state.Value)
			}
			return page, nil
		},
		item: func(i *v1.Instance) (any, error) {
			text, err := output.InstanceJSON(i)
			return json.RawMessage(text), err
		},
		rows: sys.instanceRows,
	}.command(sys)
	cmd.Flags().Var(state, "state", "only instances in this state")
	return cmd
}

// printOtherStates prints the states that the instances of a task have if none has the requested state. For example,
// instances without retries left are dead_letter, not failed.
func (s *system) printOtherStates(ctx context.Context, a *client.Client, run, task, state string) error {
	res, err := client.Call(ctx, a, a.Runs.GetRun, &v1.GetRunRequest{Id: run, Tasks: []string{task}, Brief: true})
	if err != nil {
		return err
	}
	text, total := tui.InstanceTally(res.GetRun().GetTasks(), s.progressStyle())
	if total == 0 {
		text = "it has no instances"
	}
	_, err = fmt.Fprintf(s.screen, "no instance of task %s is %s (%s)\n", task, state, text)
	return err
}

// instanceRows returns the table of instances, with a column for items if any instance has one.
func (s *system) instanceRows(instances []*v1.Instance) [][]string {
	rows := [][]string{{"INDEX", "STATE", "NODE", "ATTEMPT", "ELAPSED", "NOTE"}}
	hasItem := slices.ContainsFunc(instances, func(i *v1.Instance) bool { return i.GetItem() != "" })
	if hasItem {
		rows[0] = slices.Insert(rows[0], 1, "ITEM")
	}
	for _, i := range instances {
		t := v1.InstanceTask(&v1.Task{}, i)
		attempt, elapsed, note := words.Attempt(t), words.Elapsed(t, s.now()), words.Note(t, s.now())
		row := []string{strconv.Itoa(int(i.GetIndex())), i.GetState(), i.GetNode(), attempt, elapsed, note}
		if hasItem {
			row = slices.Insert(row, 1, words.OneLine(i.GetItem()))
		}
		rows = append(rows, row)
	}
	return rows
}
