// Package runstreams serves the calls of RunService that follow runs: WatchRun with the changes of a run, StreamRunLogs and
// ListRunLogs with what its tasks print. All watchers of a run share one poller.
//
// Of this module it may import proto, activities/store, gateway/paging, gateway/rpcerror, gateway/runindex, gateway/runlogs and
// gateway/runview.
package runstreams
