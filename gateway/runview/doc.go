// Package runview reads the state of runs and keeps it in views.
//
//	Temporal: describe ──┐
//	Run workflow: query ─┼──> Reader ──> View <── Poller (one a watched run) ──> Delta ──> watchers
//	store: status ───────┘      │
//	                            └── statusCache: the last answers, for a few seconds
//
// A Reader queries the workflow of an open run. The status of an ended run is the result of its workflow, or in the
// store if it is large. Views of a Reader are shared and immutable; a Poller has a view of its own.
//
// Of this module it may import proto, gateway/rpcerror, activities/store, activities/registry, workflows/names,
// workflows/nearest, workflows/phrase, workflows/visibility, workflows/dataconverter and workflows/definition.
package runview
