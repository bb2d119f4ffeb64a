package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

func newRunsExplain(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain RUN TASK",
		Short: "Explain why a task was placed where it is, was skipped, or cannot run on each node",
		Args:  arguments(2, 2, "RUN TASK"),
	}
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		run, err := sys.resolveRun(ctx, a, args[0])
		if err != nil {
			return err
		}
		res, err := client.Call(ctx, a, a.Runs.ExplainTask, &v1.ExplainTaskRequest{Id: run, Task: args[1]})
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, res)
		}
		if err := describeExplanation(sys.stdout, res); err != nil {
			return err
		}
		return describeApproval(ctx, sys.stdout, a, run, args[1], res.GetState())
	})
	return cmd
}

// describeExplanation explains to people why a task is placed, or waits, where it does.
func describeExplanation(w io.Writer, res *v1.ExplainTaskResponse) error {
	where := ""
	if res.GetChosen() != "" {
		where = " on " + res.GetChosen()
	}
	if res.GetReason() != "" {
		where += ": " + words.OneLine(res.GetReason())
	}
	if _, err := fmt.Fprintf(w, "task %s is %s%s\n", res.GetTask(), res.GetState(), where); err != nil {
		return err
	}
	if len(res.GetParents()) > 0 {
		rows := [][]string{{}, {"PARENT", "STATE", "BECAUSE"}}
		for _, p := range res.GetParents() {
			rows = append(rows, []string{p.GetTask(), p.GetState(), words.OneLine(p.GetReason())})
		}
		if err := output.WriteTable(w, rows); err != nil {
			return err
		}
	}
	if len(res.GetNodes()) == 0 {
		return nil
	}
	rows := [][]string{{}, {"NODE", "NOW", "SCORE", "BECAUSE"}}
	for _, n := range res.GetNodes() {
		now, score, because := "no", "", strings.Join(n.GetReasons(), "; ")
		if n.GetFeasible() {
			now, score = "yes", strconv.FormatFloat(n.GetScore(), 'f', 1, 64)
			var parts []string
			for _, p := range n.GetParts() {
				parts = append(parts, fmt.Sprintf("%s %.1f", p.GetName(), p.GetValue()+0)) // +0 turns -0 into 0
			}
			because = strings.Join(parts, ", ")
		}
		rows = append(rows, []string{n.GetName(), now, score, words.OneLine(because)})
	}
	return output.WriteTable(w, rows)
}
