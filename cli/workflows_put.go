package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

func newWorkflowsPut(sys *system) *cobra.Command {
	replace := false
	cmd := &cobra.Command{
		Use:   "put FILE",
		Short: "Store a definition under its name",
		Args:  arguments(1, 1, "FILE"),
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "replace an older definition of this name")
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		d, err := readDocument(sys, args[0])
		if err != nil {
			return err
		}
		res, err := client.Call(ctx, a, a.Workflows.PutWorkflow, &v1.PutWorkflowRequest{
			Source: &v1.PutWorkflowRequest_Document{Document: string(d.text)}, File: d.file, Replace: replace,
		})
		if err != nil {
			return withRemedy(err, func() string { return "use --replace to replace it with this definition" })
		}
		printWarnings(sys, res.GetName(), res.GetWarnings())
		if format.Value == output.JSON {
			item := storedWorkflow{Name: res.GetName(), Replaced: res.GetReplaced(), Warnings: problemItems(source.Problems(res.GetWarnings()))}
			if res.GetSchedule() != nil {
				if item.Schedule, err = output.CompactJSON(res.GetSchedule()); err != nil {
					return err
				}
			}
			return output.WriteJSON(sys.stdout, item)
		}
		what := "stored"
		if res.GetReplaced() {
			what = "replaced"
		}
		if _, err = fmt.Fprintf(sys.screen, "workflow %s is %s; `switchyard submit --workflow %s` runs it\n", res.GetName(), what, res.GetName()); err != nil || res.GetSchedule() == nil {
			return err
		}
		_, err = fmt.Fprintln(sys.screen, "its schedule "+scheduleNews(res.GetSchedule()))
		return err
	})
	return cmd
}

// storedWorkflow is the result of `workflows put` as JSON prints it.
type storedWorkflow struct {
	Name     string        `json:"name"`
	Replaced bool          `json:"replaced"`
	Warnings []problemItem `json:"warnings"`
	// Schedule is the message Schedule, or absent if the definition has none.
	Schedule json.RawMessage `json:"schedule,omitempty"`
}

// scheduleNews describes the state of a schedule for people, as the end of a sentence that begins with its name.
func scheduleNews(s *v1.Schedule) string {
	if s.GetPaused() {
		return fmt.Sprintf("is paused; `switchyard schedules resume %s` resumes it", s.GetName())
	}
	if t := firstTime(s); t != nil {
		return "is active; its next time is " + formatIn(t, s.GetTimezone())
	}
	return "is active but has no more times"
}
