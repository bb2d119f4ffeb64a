// Package runview reads what is known of a run and keeps it as a view.
//
//	Temporal: describe ──┐
//	Run workflow: query ─┼──> Reader ──> View <── Poller (one a watched run) ──> Delta ──> watchers
//	store: status ───────┘      │
//	                            └── statusCache: the last answers, for a few seconds
//
// A Reader asks the workflow of an open run. The status of a run that has ended is the result of its workflow, or in the
// store where it is large. A View that a Reader returns is shared and never changed; that of a Poller is its own.
//
// Of this module it may import proto, gateway/rpcerror, activities/store, activities/registry, workflows/names,
// workflows/nearest, workflows/phrase, workflows/visibility and workflows/definition.
package runview
