// Package nodeaccess decides what the token of a node opens: the values of runs of which the node was given a task, and, to
// write, those of the tasks that it was given.
//
//	call of a node ──> grant in memory? ──> grant in the store? ──> does the task run there now? ──> PermissionDenied
//	                        │                      │                        │ yes: a grant is stored
//	                        └──────────────────────┴────────────────────────┴──> the call passes
//
// Placement stores grants before a node can get a task. The question to Temporal is for what has none: attempts that began
// before the deployment asked for tokens, and those that a reset has left to a new chain of their run.
//
// Of this module it may import proto, activities/grants, activities/store/storekey, gateway/auth, gateway/runview and
// workflows/names.
package nodeaccess
