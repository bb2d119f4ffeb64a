package runevents

import (
	"time"

	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runindex"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// Filter selects the events of a list.
type Filter struct {
	*v1.ListRunEventsRequest
	after *afterEvent // nil if the list begins with the first event
}

// afterEvent is the event after which a list begins.
type afterEvent struct {
	id         string
	generation int32
	passed     bool // whether this page or an earlier one has passed the event
}

// NewFilter returns the filter of a request. The error is InvalidArgument if no event can match it.
func NewFilter(req *v1.ListRunEventsRequest) (*Filter, error) {
	f := &Filter{ListRunEventsRequest: req}
	if err := runindex.ValidateValue("node", req.GetNode()); err != nil {
		return nil, err
	}
	if since, until := req.GetSince().AsTime(), req.GetUntil().AsTime(); req.GetSince() != nil && req.GetUntil() != nil && !since.Before(until) {
		return nil, rpcerror.Invalid("until (%s) must be later than since (%s)", until.Format(time.RFC3339Nano), since.Format(time.RFC3339Nano))
	}
	id := req.GetAfter()
	if id == "" {
		return f, nil
	}
	generation, _, _, ok := names.ParseEventID(id)
	switch {
	case !ok:
		return nil, rpcerror.Invalid("%q is not an event id; event ids look like 0-12", id)
	case req.GetId() == "":
		return nil, rpcerror.Invalid("after (event %s) needs a run; send the id of the run too", id)
	}
	f.after = &afterEvent{id: id, generation: generation, passed: req.GetPageToken() != ""}
	return f, nil
}

// readTask returns the task or instance whose events must be read, or "" for all. The event after which a list begins may
// belong to another task than the list.
func (f *Filter) readTask() string {
	if f.after != nil {
		return ""
	}
	return f.GetTask()
}

// Wants reports whether an event matches the filter, regardless of where the list begins.
func (f *Filter) Wants(e *v1.Event) bool {
	at := e.GetAt().AsTime()
	return (f.GetTask() == "" || concerns(e, f.GetTask())) &&
		(f.GetEvent() == "" || e.GetEvent() == f.GetEvent()) &&
		(f.GetNode() == "" || e.GetNode() == f.GetNode()) &&
		(f.GetSince() == nil || !at.Before(f.GetSince().AsTime())) &&
		(f.GetUntil() == nil || at.Before(f.GetUntil().AsTime()))
}

// concerns reports whether an event belongs to the named task, to one of its instances, or to the instance of that name.
func concerns(e *v1.Event, name string) bool {
	if e.GetTask() == name {
		return true
	}
	of, _, ok := names.ParseInstanceName(e.GetTask())
	return ok && of == name
}

// runFilter returns a filter for the runs that may have matching events, and the visibility query for them.
func (f *Filter) runFilter() (runindex.RunFilter, string) {
	runs := runindex.RunFilter{ListRunsRequest: &v1.ListRunsRequest{Node: f.GetNode()}}
	query := runs.Query()
	if f.GetSince() != nil {
		query += " AND (CloseTime IS NULL OR CloseTime >= " + runindex.QuoteTime(f.GetSince()) + ")"
	}
	if f.GetUntil() != nil {
		query += " AND " + names.SubmittedAttribute + " < " + runindex.QuoteTime(f.GetUntil())
	}
	return runs, query
}
