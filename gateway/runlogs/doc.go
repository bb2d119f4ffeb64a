// Package runlogs sends the logs of the tasks of a run to a client, once or as they grow.
//
//	pollers ── Delta ──> Follower ──> a tail a task, instance or batch ──> the stream of the client
//	                        │
//	                        └── a fanOut a task that has fanned out, which lists the logs of its instances
//
// A Tree uses one Follower per run to send the logs of a run and of its child runs, one run after the other.
//
// Of this module it may import proto, gateway/rpcerror, gateway/runview, activities/logs, activities/store and
// workflows/names.
package runlogs
