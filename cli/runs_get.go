package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	"switchyard/cli/tui"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

func newRunsGet(sys *system) *cobra.Command {
	var definition bool
	cmd := &cobra.Command{
		Use:   "get RUN [TASK]",
		Short: "Show a run and its tasks, one task with its attempts and output, or the definition",
		Long: `Shows a run and its tasks, or one task with its attempts, its output and the end of its
log. TASK may be an instance, such as "each[3]". --definition prints the definition that
the run was started with, in JSON, in the form that commands accept as FILE.`,
		Args: arguments(1, 2, "RUN"),
	}
	cmd.Flags().BoolVar(&definition, "definition", false, "print the definition that the run was started with")
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON, output.JSONL)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		switch {
		case definition && len(args) > 1:
			return exit.Usagef("name a TASK or --definition, not both")
		case definition:
			res, err := client.Call(ctx, a, a.Runs.GetRunDefinition, &v1.GetRunDefinitionRequest{Id: args[0]})
			if err != nil {
				return err
			}
			return writeDefinition(sys.stdout, res.GetDefinition())
		case len(args) > 1:
			return showTask(ctx, sys, a, args[0], args[1], format.Value)
		}
		switch format.Value {
		case output.JSON:
			return a.WriteRun(ctx, args[0], &output.RunWriter{Out: sys.stdout})
		case output.JSONL:
			return a.WriteRun(ctx, args[0], &output.RunWriter{Out: sys.stdout, OneLine: true})
		}
		run, err := a.RunWithoutOutput(ctx, args[0])
		if err != nil {
			return err
		}
		return describeRun(sys.stdout, run, sys.now(), sys.dataWidth(), sys.dataStyle())
	})
	return cmd
}

// describeRun writes a run and its tasks for people. Lines of tasks have at most width cells; 0 means no limit.
func describeRun(w io.Writer, run *v1.Run, now time.Time, width int, style tui.Style) error {
	b := tui.StatusOf(run)
	lines := []string{tui.Summary(b, now, style)}
	if run.GetError() != "" {
		lines = append(lines, "  "+words.OneLine(run.GetError()))
	}
	if run.GetProblem() != "" {
		lines = append(lines, "  it makes no progress: "+words.OneLine(run.GetProblem()), "  `switchyard runs cancel --force "+run.GetId()+"` ends it")
	}
	at := func(what string, t *timestamppb.Timestamp) {
		if t != nil {
			lines = append(lines, fmt.Sprintf("  %s %s", what, t.AsTime().In(style.Zone).Format(time.DateTime)))
		}
	}
	at("created", run.GetCreatedAt())
	if run.GetSubmittedBy() != "" {
		lines = append(lines, "  by      "+words.OneLine(run.GetSubmittedBy()))
	}
	if text := approvalText(run.GetApproval()); text != "" {
		lines = append(lines, "  start   "+words.OneLine(text))
	}
	if run.GetBatch() != "" {
		lines = append(lines, "  batch   "+words.OneLine(run.GetBatch()))
	}
	if text := sourceText(run.GetSource()); text != "" {
		lines = append(lines, "  source  "+text)
	}
	if run.GetIdempotencyKey() != "" {
		lines = append(lines, "  key     "+words.OneLine(run.GetIdempotencyKey()))
	}
	if run.GetTrigger() != "" {
		lines = append(lines, "  trigger "+words.OneLine(run.GetTrigger()))
	}
	if run.GetParent() != "" {
		lines = append(lines, "  parent  "+words.OneLine(run.GetParent()))
	}
	at("late since", run.GetLateSince())
	at("ended  ", run.GetCompletedAt())
	if run.GetGeneration() > 0 {
		lines = append(lines, fmt.Sprintf("  generation %d", run.GetGeneration()))
	}
	if text := agentsText(run); text != "" {
		lines = append(lines, "  agents  "+text)
	}
	lines = append(lines, valueLines("  input   ", run.GetInput())...)
	lines = append(append(lines, valueLines("  context ", run.GetContext())...), "")
	for _, line := range append(lines, tui.Table(b, now, width, style)...) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// maxShownValues is the most inputs of a run, or values of its context, that are shown.
const maxShownValues = 20

// valueLines returns a line for each value of an object in the syntax of --input, with long values cut. The first line
// begins with label, and the others align with it.
func valueLines(label string, object *structpb.Struct) []string {
	var lines []string
	known := slices.Sorted(maps.Keys(object.GetFields()))
	for _, name := range known[:min(len(known), maxShownValues)] {
		lines = append(lines, label+words.OneLine(name)+"="+output.ShortText(object.GetFields()[name]))
		label = strings.Repeat(" ", len(label))
	}
	if more := len(known) - maxShownValues; more > 0 {
		lines = append(lines, fmt.Sprintf("%sand %d more; -o json shows all", label, more))
	}
	return lines
}

// approvalText describes the approval of a run, or returns "" if the run needs none.
func approvalText(a *v1.RunApproval) string {
	switch {
	case a == nil:
		return ""
	case a.GetState() == v1.ApprovalPending && a.GetDefinitionVersion() > 0:
		return fmt.Sprintf("waits for the approval of an operator: `switchyard runs approve RUN --definition-version %d`, or `reject RUN`", a.GetDefinitionVersion())
	case a.GetState() == v1.ApprovalPending:
		return "waits for the approval of an operator: `switchyard runs approve|reject RUN`"
	case a.GetReason() != "":
		return a.GetState() + " by " + a.GetBy() + ": " + a.GetReason()
	}
	return a.GetState() + " by " + a.GetBy()
}

// sourceText describes the files with which the tasks of a run start, or returns "" if there are none.
func sourceText(s *v1.Artifact) string {
	if s.GetDigest() == "" {
		if s != nil {
			return "from git, when the first task starts"
		}
		return ""
	}
	text := fmt.Sprintf("%s, %s, %s", words.Count(int(s.GetFiles()), "file"), words.Size(s.GetSize()), s.GetDigest())
	if s.GetCommit() != "" {
		text += ", commit " + s.GetCommit()
	}
	return text
}
