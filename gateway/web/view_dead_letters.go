package web

import (
	"context"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// deadLetterFilters are the query parameters of the dead letter list, named as in the API.
var deadLetterFilters = []string{"run", "type", "node", "page"}

// deadLettersPageSize is the number of runs that a page covers.
const deadLettersPageSize = 50

// deadLettersView is the data of the dead letter list.
type deadLettersView struct {
	Letters     []deadLetterRow
	Warnings    []string
	Fields      []filterField
	IsFiltered  bool
	First, Next string
}

// HasFields reports whether any filter is set.
func (v deadLettersView) HasFields() bool { return v.IsFiltered }

// deadLetterRow is a row of the list.
type deadLetterRow struct {
	*v1.DeadLetter
	// Actions apply to this dead letter. The first row of a run with several dead letters also has actions for all of them.
	Actions []Action
}

// LiveID returns the id of the block.
func (r deadLetterRow) LiveID() string { return "dead-" + r.GetRun() + "-" + r.GetTask() }

// Last returns the last attempt, or an empty one.
func (r deadLetterRow) Last() *v1.Attempt {
	if n := len(r.GetAttempts()); n > 0 {
		return r.GetAttempts()[n-1]
	}
	return &v1.Attempt{}
}

func openDeadLetters(w *Web, req request) viewSource {
	return newPolledSource(func(ctx context.Context) (viewData, error) {
		q := req.query
		res, err := w.services.runs.ListDeadLetters(ctx, connect.NewRequest(&v1.ListDeadLettersRequest{
			Run: q.Get("run"), Type: q.Get("type"), Node: q.Get("node"), PageToken: q.Get("page"), PageSize: deadLettersPageSize,
		}))
		if err != nil {
			return viewData{}, err
		}
		view := deadLettersView{
			Letters: deadLetterRows(res.Msg.GetItems(), req), Warnings: res.Msg.GetWarnings(), IsFiltered: isFiltered(q),
			Fields: []filterField{
				{Name: "run", Label: "Run", Value: q.Get("run")},
				{Name: "type", Label: "Task type", Value: q.Get("type"), Choices: v1.TaskTypes()},
				{Name: "node", Label: "Node", Value: q.Get("node")},
			},
		}
		view.First, view.Next = pageLinks(req, res.Msg.GetNextPageToken())
		return viewData{"Dead letters", "dead-letters", view}, nil
	})
}

func deadLetterRows(letters []*v1.DeadLetter, req request) []deadLetterRow {
	ofRun := map[string]int{}
	for _, l := range letters {
		ofRun[l.GetRun()]++
	}
	rows, seen := make([]deadLetterRow, 0, len(letters)), map[string]bool{}
	for _, l := range letters {
		about := "task " + l.GetTask() + " of run " + l.GetRun()
		row := deadLetterRow{DeadLetter: l, Actions: []Action{
			newAction("retry-dead-letter", about, req.caller, "run", l.GetRun(), "task", l.GetTask()),
			newAction("purge-dead-letter", about, req.caller, "run", l.GetRun(), "task", l.GetTask()),
		}}
		if ofRun[l.GetRun()] > 1 && !seen[l.GetRun()] {
			row.Actions = append(row.Actions,
				newAction("retry-dead-letters", l.GetRun(), req.caller, "run", l.GetRun()), newAction("purge-dead-letters", l.GetRun(), req.caller, "run", l.GetRun()))
		}
		seen[l.GetRun()] = true
		rows = append(rows, row)
	}
	return rows
}
