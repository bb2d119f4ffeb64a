package runindex

import (
	"context"

	workflowpb "go.temporal.io/api/workflow/v1"

	"switchyard/gateway/auth"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

// scope is which runs the caller of a request reaches.
type scope struct{ caller *auth.Principal }

func scopeOf(ctx context.Context) scope { return scope{auth.From(ctx)} }

// narrow returns a query that finds of another one only what the caller reaches, or false if it reaches nothing.
func (s scope) narrow(query string) (string, bool) {
	switch {
	case s.caller.SeesAll():
		return query, true
	case !s.caller.Owns(s.caller.Name) || ValidateValue("owner", s.caller.Name) != nil:
		return "", false
	}
	return query + " AND " + names.OwnerAttribute + " = " + quote(s.caller.Name), true
}

// reaches reports whether the caller reaches a run. Its search attributes are those of the execution itself, if it was
// described, and do not lag then.
func (s scope) reaches(info *workflowpb.WorkflowExecutionInfo) bool {
	return s.caller.SeesAll() || s.caller.Owns(OwnerOf(info))
}

// OwnerOf returns who owns a run, or "" if it has no owner.
func OwnerOf(info *workflowpb.WorkflowExecutionInfo) string {
	return visibility.Decode(info.GetSearchAttributes()).Owner
}
