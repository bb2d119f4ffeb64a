package cli

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	"switchyard/cli/tui"
	"switchyard/drawing/svg"
)

// The width of a chart without a terminal, and the least width of a chart.
const (
	chartWidth    = 110
	minChartWidth = 80
)

func newRunsTimeline(sys *system) *cobra.Command {
	var width, limit int
	cmd := &cobra.Command{
		Use:   "timeline RUN",
		Short: "Draw when each task of a run was queued, waited on its node and ran, by node",
		Long: `Draws when each task of a run was queued, waited on its node and ran, by node. A task is
queued from the end of its last parent, or of its previous attempt, until a node takes
it; it waits on the node until its process starts. A fanned-out task has a row for each
instance or, above 20 instances, one for each node. If there are too many rows, those
that took longest are drawn; -o json has them all, with times.

-o svg draws a picture for browsers, in the order of the graph, which includes the tasks
that have not started and the reason for each wait.`,
		Args: arguments(1, 1, "RUN"),
	}
	cmd.Flags().IntVar(&width, "width", 0, "width of the chart in characters (default the width of the terminal, else 110)")
	cmd.Flags().IntVar(&limit, "limit", 200, "maximum number of rows to draw; 0 means all")
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON, formatSVG)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		switch {
		case cmd.Flags().Changed("width") && (width < minChartWidth || width > 1000):
			return exit.Usagef("--width %d: it must be %d to 1000", width, minChartWidth)
		case limit < 0:
			return exit.Usagef("--limit %d: it must not be negative", limit)
		case width == 0 && sys.stdoutTerminal:
			width, _ = sys.screen.Size()
			width = max(width, minChartWidth)
		case width == 0:
			width = chartWidth
		}
		if format.Value == formatSVG {
			d, err := readDrawing(ctx, a, args[0], sys.now())
			if err != nil {
				return err
			}
			_, err = io.WriteString(sys.stdout, svg.Document(svg.TimelineChart(d.rows, d.axis, svg.TimelineOptions{Name: "timeline of " + d.run.GetId()})))
			return err
		}
		t, err := readTimeline(ctx, a, args[0], tui.LaneWidth(width), sys.now())
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteJSON(sys.stdout, t.document())
		}
		style := sys.dataStyle()
		lines := append([]string{tui.Summary(t.status, sys.now(), style), ""}, tui.Gantt(t.rows, t.scale, limit, style)...)
		_, err = io.WriteString(sys.stdout, strings.Join(lines, "\n")+"\n")
		return err
	})
	return cmd
}
