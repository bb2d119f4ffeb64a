package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

func newQueue(sys *system) *cobra.Command {
	req := &v1.GetQueueRequest{}
	cmd := &cobra.Command{
		Use: "queue", Short: "Show which tasks wait to start, why, and what they request",
		Args: arguments(0, 0, ""),
	}
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	by := output.Choice{Value: "reason", Allowed: []string{"reason", "owner"}}
	cmd.Flags().Var(&by, "by", "what the rows stand for: reason (why tasks wait) or owner (who submitted them, with what each owner uses)")
	cmd.Flags().StringVar(&req.Workflow, "workflow", "", "only tasks of runs of this workflow")
	cmd.Flags().StringVar(&req.Run, "run", "", "only tasks of this run")
	cmd.Flags().StringVar(&req.Batch, "batch", "", "only tasks of the runs submitted with this --batch")
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, _ []string) error {
		if by.Value == "owner" {
			return sys.queueByOwner(ctx, a, req, format.Value)
		}
		queue, err := client.Call(ctx, a, a.Tasks.GetQueue, req)
		if err != nil {
			return err
		}
		for _, warning := range queue.GetWarnings() {
			fmt.Fprintf(sys.screen, "warning: %s\n", words.OneLine(warning))
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, queue)
		}
		return sys.writeQueue(sys.stdout, queue)
	})
	return cmd
}

// queueByOwner writes what the owners of runs use, and how much of them waits.
func (s *system) queueByOwner(ctx context.Context, a *client.Client, req *v1.GetQueueRequest, format string) error {
	if req.GetWorkflow()+req.GetRun()+req.GetBatch() != "" {
		return exit.Usagef("--by owner shows all tasks; leave out --workflow, --run and --batch")
	}
	res, err := client.Call(ctx, a, a.Owners.ListOwners, &v1.ListOwnersRequest{})
	if err != nil {
		return err
	}
	for _, warning := range res.GetWarnings() {
		fmt.Fprintf(s.screen, "warning: %s\n", words.OneLine(warning))
	}
	if format == output.JSON {
		return output.WriteMessage(s.stdout, res)
	}
	rows := [][]string{ownersHeader}
	for _, owner := range res.GetItems() {
		rows = append(rows, ownersRow(owner))
	}
	if len(rows) == 1 {
		_, err := fmt.Fprintln(s.stdout, "no owner uses anything")
		return err
	}
	return output.WriteTable(s.stdout, rows)
}

// writeQueue writes the queue for people: one line per group, and the amounts asked for and free.
func (s *system) writeQueue(w io.Writer, queue *v1.GetQueueResponse) error {
	if queue.GetTasks() == 0 {
		_, err := fmt.Fprintln(w, "no tasks are waiting")
		return err
	}
	rows := [][]string{{"COUNT", "REASON", "SINCE", "LONGEST", "REQUESTS", "WHY"}}
	for _, g := range queue.GetGroups() {
		longest := ""
		if of := g.GetExamples(); len(of) > 0 {
			longest = of[0].GetRun() + " " + of[0].GetTask()
		}
		rows = append(rows, []string{
			strconv.Itoa(int(g.GetCount())), g.GetReason(), s.formatTime(g.GetOldestQueuedAt()), longest, demandText(g), words.OneLine(g.GetText()),
		})
	}
	if err := output.WriteTable(w, output.Fit(rows, s.dataWidth(), 3)); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	rows = [][]string{{"RESOURCE", "REQUESTED", "FREE", "TOTAL"}}
	for _, of := range []struct {
		what   string
		amount *v1.QueueAmount
	}{
		{"slots", queue.GetSlots()}, {"cores", queue.GetCores()}, {"memory in MiB", queue.GetMemoryMb()}, {"GPUs", queue.GetGpus()},
	} {
		rows = append(rows, []string{of.what, shortNumber(of.amount.GetAsked()), shortNumber(of.amount.GetFree()), shortNumber(of.amount.GetTotal())})
	}
	return output.WriteTable(w, rows)
}

// demandText returns what each task of a group needs on a node, or "" if the group does not wait for a node.
func demandText(g *v1.QueueGroup) string {
	d := g.GetDemand()
	if d == nil {
		return ""
	}
	parts := []string{g.GetType()}
	add := func(n float64, unit string) {
		if n > 0 {
			parts = append(parts, shortNumber(n)+" "+unit)
		}
	}
	add(d.GetCores(), "cores")
	add(float64(d.GetMemoryMb()), "MiB")
	add(d.GPUAmount(), "GPUs")
	if d.NumaNode != nil {
		parts = append(parts, fmt.Sprintf("NUMA node %d", d.GetNumaNode()))
	}
	return words.OneLine(strings.Join(append(parts, d.GetConstraints()...), ", "))
}

// shortNumber formats a number with at most two decimals.
func shortNumber(n float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(n, 'f', 2, 64), "0"), ".")
}
