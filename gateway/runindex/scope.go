package runindex

import (
	"context"

	workflowpb "go.temporal.io/api/workflow/v1"

	"switchyard/gateway/auth"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

// scope determines which runs the caller of a request may see.
type scope struct{ caller *auth.Principal }

func scopeOf(ctx context.Context) scope { return scope{auth.From(ctx)} }

// narrow restricts a query to the runs that the caller may see, or returns false if there can be none.
func (s scope) narrow(query string) (string, bool) {
	switch {
	case s.caller.SeesAll():
		return query, true
	case !s.caller.Owns(s.caller.Name) || ValidateValue("owner", s.caller.Name) != nil:
		return "", false
	}
	return query + " AND " + names.OwnerAttribute + " = " + quote(s.caller.Name), true
}

// reaches reports whether the caller may see a run. The search attributes of a described execution are current, unlike
// those in visibility.
func (s scope) reaches(info *workflowpb.WorkflowExecutionInfo) bool {
	return s.caller.SeesAll() || s.caller.Owns(OwnerOf(info))
}

// OwnerOf returns the owner of a run, or "" if it has none.
func OwnerOf(info *workflowpb.WorkflowExecutionInfo) string {
	return visibility.Decode(info.GetSearchAttributes()).Owner
}
