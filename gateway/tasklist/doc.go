// Package tasklist lists the tasks of all runs, the newest run first, and shows what waits to start among them.
//
// No part of a deployment knows all tasks, so a page reads a bounded number of runs that may have matching tasks, each as GetRun
// does. The tasks of a run are exact at the time of reading. The selection of runs lags:
//
//   - by moments for runs that have just started or ended, because visibility lags;
//   - by a heartbeat for assigned and running tasks: only runs that a node reports to run are read, besides runs with
//     tasks that need no node;
//   - for a node, only the runs are read that name it among the first 32 nodes to which they sent tasks.
//
// The queue reads the newest open runs in the same way. The reason why a task waits comes from its run, mapped to a few reasons;
// its demand comes from its definition.
//
// Of this module it may import proto, gateway/paging, gateway/rpcerror, gateway/runindex, gateway/runview,
// activities/placement, activities/registry, workflows/definition, workflows/names, workflows/phrase, workflows/policy and
// workflows/visibility.
package tasklist
