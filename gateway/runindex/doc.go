// Package runindex finds runs in Temporal's visibility: the newest ones that match a filter, and the one that a text
// names. It finds only the runs that the caller may see; a run of another owner looks like one that does not exist.
//
// Of this module it may import proto, gateway/auth, gateway/paging, gateway/rpcerror, gateway/runview, workflows/names and
// workflows/visibility.
package runindex
