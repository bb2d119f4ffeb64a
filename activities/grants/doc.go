// Package grants keeps which nodes were given which tasks, so that a gateway knows what the token of a node opens.
//
//	placement ──> Put, before the node can get the task ──> runs/<run>/grants/<node>/<chain>/<task>
//	gateway   ──> Has, HasRun, for each call of a node's token
//
// A grant is for a task, whatever its instances, and lasts as long as the values of its run: an attempt may deliver what it
// has left hours after its end.
//
// It may import activities/store and activities/store/storekey.
package grants
