package web

import (
	"context"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// runFilters are the parameters of the list of runs, as the API has them.
var runFilters = []string{"state", "name", "text", "owner", "node", "type", "label", "trigger", "batch", "parent", "page"}

// runsView is what the list of runs shows.
type runsView struct {
	Runs []runRow
	Next string // token of the next page
}

// runRow is a line of it.
type runRow struct{ *v1.Run }

// LiveID returns the id of the block.
func (r runRow) LiveID() string { return "run-" + r.GetId() }

func openRuns(w *Web, req request) viewSource {
	return polled(func(ctx context.Context) (viewData, error) {
		q := req.query
		res, err := w.services.runs.ListRuns(ctx, connect.NewRequest(&v1.ListRunsRequest{
			State: q.Get("state"), Name: q.Get("name"), Text: q.Get("text"), Owner: q.Get("owner"), Node: q.Get("node"), Type: q.Get("type"),
			Label: q.Get("label"), Trigger: q.Get("trigger"), Batch: q.Get("batch"), Parent: q.Get("parent"), PageToken: q.Get("page"), PageSize: 50,
		}))
		if err != nil {
			return viewData{}, err
		}
		view := runsView{Next: res.Msg.GetNextPageToken()}
		for _, run := range res.Msg.GetItems() {
			view.Runs = append(view.Runs, runRow{run})
		}
		return viewData{"Runs", "runs", view}, nil
	})
}
