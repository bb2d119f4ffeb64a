// Package tasklist lists the tasks of all runs, the newest run first, and shows what waits to start among them.
//
// Nothing in a deployment knows all tasks, so that a page reads the runs that may have some: a bounded number, each as
// GetRun does. What a run says of its tasks is exact when it is read. Which runs are read lags:
//
//   - by moments for runs that have just started or ended, as the visibility of Temporal does;
//   - for tasks that are assigned or running, by a heartbeat: only runs are read of which a node says that it runs
//     something, besides those with tasks that need no node;
//   - for a node, runs are read that name it among the first 32 that they sent tasks to.
//
// The queue reads the newest open runs in the same way. Why a task waits is what its run says of it, sorted into few reasons; what
// the task asks of a node is what its definition says.
//
// Of this module it may import proto, gateway/paging, gateway/rpcerror, gateway/runindex, gateway/runview,
// activities/placement, activities/registry, workflows/definition, workflows/names, workflows/phrase and workflows/visibility.
package tasklist
