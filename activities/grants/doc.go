// Package grants records which nodes were given which tasks, so that a gateway knows what the token of a node may access.
//
//	placement ──> Put, before the node can get the task ──> runs/<run>/grants/<node>/<chain>/<task>
//	gateway   ──> Has, HasRun, for each call of a node's token
//
// A grant covers a task with all its instances, and lasts as long as the values of its run: an attempt may deliver its
// results hours after its end.
//
// It may import activities/store and activities/store/storekey.
package grants
