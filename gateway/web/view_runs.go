package web

import (
	"context"
	"net/url"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// runFilters are the query parameters of the run list, named as in the API.
var runFilters = []string{"state", "name", "text", "owner", "node", "type", "label", "trigger", "batch", "parent", "late", "since", "page"}

// runsPageSize is the number of runs on a page.
const runsPageSize = 50

// runsView is the data of the run list.
type runsView struct {
	Runs []runRow
	Tabs []stateTab
	// Fields are the filters of the form; State is the filter that the tabs set.
	Fields     []filterField
	State      string
	IsFiltered bool
	// First and Next are the addresses of the first and the next page, or "".
	First, Next string
}

// runRow is a row of the list.
type runRow struct {
	*v1.Run
	Counts []countBar
}

// LiveID returns the id of the block.
func (r runRow) LiveID() string { return "run-" + r.GetId() }

// IsOpen reports whether the run has not ended.
func (r runRow) IsOpen() bool { return !v1.IsRunTerminal(r.GetState()) }

// stateTab is a link to the items in a state.
type stateTab struct {
	State, URL string // "" means any state
	Count      int32
	Current    bool
}

// filterField is a field of a filter form.
type filterField struct {
	Name, Label, Value, Hint string
	Choices                  []string // empty means free text
}

func openRuns(w *Web, req request) viewSource {
	counts := newRunCounts(w.services.runs, req)
	load := func(ctx context.Context) (viewData, error) {
		list, err := runsRequest(req.query, w.Now())
		if err != nil {
			return viewData{}, err
		}
		res, err := w.services.runs.ListRuns(ctx, connect.NewRequest(list))
		if err != nil {
			return viewData{}, err
		}
		view := runsView{
			Tabs: stateTabs(req, res.Msg.GetTotals()), Fields: runFilterFields(req.query), State: req.query.Get("state"), IsFiltered: isFiltered(req.query),
		}
		counts.setRuns(res.Msg.GetItems())
		for _, run := range res.Msg.GetItems() {
			view.Runs = append(view.Runs, counts.row(run))
		}
		view.First, view.Next = pageLinks(req, res.Msg.GetNextPageToken())
		return viewData{"Runs", "runs", view}, nil
	}
	return closingSource{newPolledSource(load), counts.close}
}

// closingSource calls done when it is closed.
type closingSource struct {
	viewSource
	done func()
}

func (s closingSource) close() {
	s.viewSource.close()
	s.done()
}

// runsRequest converts the query parameters of the run list to a request.
func runsRequest(q url.Values, now time.Time) (*v1.ListRunsRequest, error) {
	since, err := parseSince(q.Get("since"), now)
	if err != nil {
		return nil, err
	}
	return &v1.ListRunsRequest{
		State: q.Get("state"), Name: q.Get("name"), Text: q.Get("text"), Owner: q.Get("owner"), Node: q.Get("node"), Type: q.Get("type"),
		Label: q.Get("label"), Trigger: q.Get("trigger"), Batch: q.Get("batch"), Parent: q.Get("parent"), Late: q.Get("late") == isLate, Since: since,
		PageToken: q.Get("page"), PageSize: runsPageSize, Totals: true,
	}, nil
}

// isLate is the value of the filter that leaves only late runs.
const isLate = "yes"

// parseSince parses a duration before now, such as "24h", or a time, such as "2026-03-14T15:09:26Z". It returns nil for an
// empty text.
func parseSince(text string, now time.Time) (*timestamppb.Timestamp, error) {
	if text == "" {
		return nil, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return timestamppb.New(now.Add(-d)), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return timestamppb.New(at), nil
		}
	}
	return nil, rpcerror.Invalid("since %q is neither a duration such as 24h nor a time such as 2026-03-14T15:09:26Z", text)
}

func runFilterFields(q url.Values) []filterField {
	fields := []filterField{
		{Name: "name", Label: "Workflow"},
		{Name: "text", Label: "Text", Hint: "a word of the description, a task or the error"},
		{Name: "owner", Label: "Submitted by"},
		{Name: "since", Label: "Since", Hint: "24h, or 2026-03-14"},
		{Name: "trigger", Label: "Trigger", Choices: v1.Triggers()},
		{Name: "type", Label: "Task type", Choices: v1.TaskTypes()},
		{Name: "node", Label: "Node"},
		{Name: "label", Label: "Node label"},
		{Name: "batch", Label: "Batch"},
		{Name: "parent", Label: "Parent run"},
		{Name: "late", Label: "Late", Choices: []string{isLate}},
	}
	for i := range fields {
		fields[i].Value = q.Get(fields[i].Name)
	}
	return fields
}

// HasFields reports whether any filter of the form is set.
func (v runsView) HasFields() bool {
	return slices.ContainsFunc(v.Fields, func(f filterField) bool { return f.Value != "" })
}

// isFiltered reports whether any parameter but the page restricts the list.
func isFiltered(q url.Values) bool { return len(q) > 1 || len(q) == 1 && !q.Has("page") }

// stateTabs returns a tab for each run state with the number of runs.
func stateTabs(req request, totals map[string]int32) []stateTab {
	current := req.query.Get("state")
	var all int32
	for _, n := range totals {
		all += n
	}
	tabs := []stateTab{{"", withParameter(req.url(), "state", ""), all, current == ""}}
	for _, state := range v1.RunStates() {
		tabs = append(tabs, stateTab{state, withParameter(req.url(), "state", state), totals[state], current == state})
	}
	return tabs
}

// pageLinks returns the addresses of the first and the next page. The first is "" on the first page, the next is "" on the
// last page.
func pageLinks(req request, token string) (first, next string) {
	if req.query.Get("page") != "" {
		first = withParameter(req.url(), "page", "")
	}
	if token != "" {
		next = withParameter(req.url(), "page", token)
	}
	return first, next
}
