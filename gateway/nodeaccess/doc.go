// Package nodeaccess authorises the tokens of nodes: a node may read the values of runs of which it was given a task, and
// write the values of the tasks that it was given.
//
//	call of a node ──> grant in memory? ──> grant in the store? ──> does the task run there now? ──> PermissionDenied
//	                        │                      │                        │ yes: a grant is stored
//	                        └──────────────────────┴────────────────────────┴──> the call passes
//
// Placement stores a grant before the node can get the task. The query to Temporal covers attempts without a grant: those that
// began before the deployment required tokens, and those that a reset left to a new chain of their run.
//
// Of this module it may import proto, activities/grants, activities/store/storekey, gateway/auth, gateway/runview and
// workflows/names.
package nodeaccess
