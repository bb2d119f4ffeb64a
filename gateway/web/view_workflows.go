package web

import (
	"context"
	"net/url"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/cron"
)

// workflowsPage is the page size of the lists of workflows and schedules.
const workflowsPage = 50

// workflowsView is the data of the workflow list.
type workflowsView struct {
	Search string
	Rows   []workflowRow
	Pager  pager
	Editor link
}

// pager is the footer of a list.
type pager struct {
	Total int32  // length of the list, or 0 if unknown
	Noun  string // singular noun for the listed items
	Next  string // token of the next page, or ""
}

// workflowRow is a row of the list.
type workflowRow struct{ *v1.StoredWorkflow }

// LiveID returns the id of the block.
func (r workflowRow) LiveID() string { return "workflow-" + r.GetName() }

// Updated returns when the workflow was stored.
func (r workflowRow) Updated() *timestamppb.Timestamp { return storedAt(r.GetUpdatedAt()) }

// Times describes the schedule of the workflow, or returns "".
func (r workflowRow) Times() string { return scheduleWords(r.GetCron(), r.GetTimezone()) }

func openWorkflows(w *Web, req request) viewSource {
	return newPolledSource(func(ctx context.Context) (viewData, error) {
		res, err := w.services.workflows.ListWorkflows(ctx, connect.NewRequest(&v1.ListWorkflowsRequest{
			PageSize: workflowsPage, PageToken: req.query.Get("page"), Search: req.query.Get("search"),
		}))
		if err != nil {
			return viewData{}, err
		}
		view := workflowsView{
			Search: req.query.Get("search"), Pager: pager{res.Msg.GetTotal(), "workflow", res.Msg.GetNextPageToken()},
			Editor: newLink("New workflow", editorPath, runService+"SubmitRun", req.caller),
		}
		for _, stored := range res.Msg.GetItems() {
			view.Rows = append(view.Rows, workflowRow{stored})
		}
		return viewData{"Workflows", "workflows", view}, nil
	})
}

// workflowURL returns the address of the page of a stored workflow.
func workflowURL(name string) string { return "/ui/workflows/" + url.PathEscape(name) }

// scheduleURL returns the address of the page of a schedule.
func scheduleURL(name string) string { return "/ui/schedules/" + url.PathEscape(name) }

// scheduleWords describes the times of a schedule, or returns "" if there are none.
func scheduleWords(expressions []string, zone string) string {
	if len(expressions) == 0 {
		return ""
	}
	words := make([]string, len(expressions))
	for i, text := range expressions {
		words[i] = cron.Words(text)
	}
	if zone == "" {
		zone = "UTC"
	}
	return strings.Join(words, "; ") + " (" + zone + ")"
}

// storedAt parses a time that the API returns as text. It returns nil if the text is not a time.
func storedAt(text string) *timestamppb.Timestamp {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil
	}
	return timestamppb.New(t)
}
