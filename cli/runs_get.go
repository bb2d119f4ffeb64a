package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/cli/tui"
	v1 "switchyard/proto/switchyard/v1"
)

func newRunsGet(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get RUN",
		Short: "Show a run and its tasks",
		Args:  arguments(1, 1, "RUN"),
	}
	gateway, output := clientFlag(cmd), outputFlag(cmd, formatText, formatJSON, formatJSONL)
	cmd.RunE = onGateway(gateway, func(ctx context.Context, a *api, args []string) error {
		switch output.value {
		case formatJSON:
			return a.writeRun(ctx, args[0], &runWriter{w: sys.stdout})
		case formatJSONL:
			return a.writeRun(ctx, args[0], &runWriter{w: sys.stdout, line: true})
		}
		run, err := a.brief(ctx, args[0])
		if err != nil {
			return err
		}
		return describeRun(sys.stdout, run, sys.now(), sys.dataStyle())
	})
	return cmd
}

// describeRun writes a run and its tasks for people.
func describeRun(w io.Writer, run *v1.Run, now time.Time, style tui.Style) error {
	b := tui.BoardOf(run)
	lines := []string{tui.Summary(b, now, style)}
	if run.GetError() != "" {
		lines = append(lines, "  "+tui.OneLine(run.GetError()))
	}
	if run.GetProblem() != "" {
		lines = append(lines, "  it makes no progress: "+tui.OneLine(run.GetProblem()), "  `switchyard runs cancel --force "+run.GetId()+"` ends it")
	}
	at := func(what string, t *timestamppb.Timestamp) {
		if t != nil {
			lines = append(lines, fmt.Sprintf("  %s %s", what, t.AsTime().In(style.Zone).Format(time.DateTime)))
		}
	}
	at("created", run.GetCreatedAt())
	at("ended  ", run.GetCompletedAt())
	if run.GetGeneration() > 0 {
		lines = append(lines, fmt.Sprintf("  generation %d", run.GetGeneration()))
	}
	if len(run.GetContext().GetFields()) > 0 {
		context, err := json.Marshal(run.GetContext().AsMap())
		if err != nil {
			return err
		}
		lines = append(lines, "  context "+string(context))
	}
	lines = append(lines, "")
	for _, line := range append(lines, tui.Table(b, now, 0, style)...) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
