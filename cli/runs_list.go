package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

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
}

func newRunsList(sys *system) *cobra.Command {
	req := &v1.ListRunsRequest{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, newest first",
		Args:  arguments(0, 0, ""),
	}
	state := &choice{allowed: []string{"running", "completed", "failed", "cancelled"}}
	cmd.Flags().Var(state, "state", "only runs in this state; open ones are running")
	cmd.Flags().StringVar(&req.Name, "name", "", "only runs of this workflow")
	cmd.Flags().Int32Var(&req.PageSize, "limit", 100, "most runs to list, up to 1000")
	cmd.Flags().StringVar(&req.PageToken, "page-token", "", "go on from the nextPageToken of the list before")
	gateway, output := clientFlag(cmd), outputFlag(cmd, formatText, formatJSON, formatJSONL)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		req.State = state.value
		if req.PageSize < 1 || req.PageSize > 1000 {
			return usageError("--limit %d: it must be 1 to 1000", req.PageSize)
		}
		a, err := connectTo(*gateway)
		if err != nil {
			return err
		}
		defer a.close()
		page, err := call(cmd.Context(), a, a.calls.ListRuns, req)
		if err != nil {
			return err
		}
		switch output.value {
		case formatJSON:
			return writeJSON(sys.stdout, struct {
				Items         []runItem `json:"items"`
				NextPageToken string    `json:"nextPageToken"`
			}{runItems(page), page.GetNextPageToken()})
		case formatJSONL:
			for _, item := range runItems(page) {
				if err := writeLine(sys.stdout, item); err != nil {
					return err
				}
			}
			return nil
		}
		if err := writeRuns(sys.stdout, page, sys.zone); err != nil {
			return err
		}
		if page.GetNextPageToken() != "" {
			fmt.Fprintf(sys.screen, "there are more: --page-token %s\n", page.GetNextPageToken())
		}
		return nil
	}
	return cmd
}

func runItems(page *v1.ListRunsResponse) []runItem {
	items := make([]runItem, 0, len(page.GetItems()))
	for _, run := range page.GetItems() {
		items = append(items, runItem{
			ID: run.GetId(), Name: run.GetName(), State: run.GetState(), Reason: run.GetReason(),
			CreatedAt: timestamp(run.GetCreatedAt()), CompletedAt: timestamp(run.GetCompletedAt()),
		})
	}
	return items
}

// writeRuns writes runs as a table for people.
func writeRuns(w io.Writer, page *v1.ListRunsResponse, zone *time.Location) error {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tWORKFLOW\tSTATE\tCREATED")
	for _, run := range page.GetItems() {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", run.GetId(), run.GetName(), run.GetState(),
			run.GetCreatedAt().AsTime().In(zone).Format(time.DateTime))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, text.String())
	return err
}
