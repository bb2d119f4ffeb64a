package cli

import (
	"context"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/drawing/report"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

func newRunsReport(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "report RUN > FILE",
		Short: "Write an HTML report of a run: graph, timeline, tasks and failures",
		Long: `Writes an HTML report of a run to standard output: its graph, its timeline, a table of
its tasks, the failed tasks with their errors and last 20 lines of output, the artifacts
with links to the page of the gateway, and the inputs.
The report is a single file that needs no network and no scripts. Large fan-outs are
summed up as counts over time, and at most 30 failures are shown.

  switchyard runs report last > run.html`,
		Args: arguments(1, 1, "RUN"),
	}
	clientFlag(cmd)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		if sys.stdoutPlain {
			return exit.Usagef("a report is HTML and is not written to a terminal; use `switchyard runs report %s > run.html`", args[0])
		}
		d, err := readDrawing(ctx, a, args[0], sys.now())
		if err != nil {
			return err
		}
		r := report.Report{Run: d.run, Nodes: d.nodes, Layout: d.layout, Rows: d.rows, Axis: d.axis, Now: sys.now().In(sys.zone), PageURL: a.URL()}
		order := make([]string, 0, len(d.nodes))
		for _, i := range d.layout.Order {
			order = append(order, d.nodes[i].Name)
		}
		r.Failures, r.FailureCount = report.FailuresOf(d.run, order, d.failed)
		for i := range r.Failures {
			if err := readLastLines(ctx, a, d.run.GetId(), &r.Failures[i]); err != nil {
				return err
			}
		}
		return r.Write(sys.stdout)
	})
	return cmd
}

// readLastLines reads the last lines that a failed task or instance printed. It notes in the failure if the log cannot
// be read. A fanned-out task prints nothing itself.
func readLastLines(ctx context.Context, a *client.Client, run string, f *report.Failure) error {
	if words.IsFannedOut(f.Task) {
		return nil
	}
	res, err := client.Call(ctx, a, a.Runs.ListRunLogs, &v1.ListRunLogsRequest{Id: run, Task: f.Name, Tail: report.MaxLines})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		f.Missing = "its log cannot be read: " + err.Error()
		return nil
	case len(res.GetMissing()) > 0:
		f.Missing = "parts of its log are missing"
	}
	for _, line := range res.GetItems() {
		f.Lines = append(f.Lines, line.GetText())
	}
	return nil
}
