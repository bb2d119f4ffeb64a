// Package runindex finds runs in the visibility of Temporal: the newest ones that match a filter, and the one that a text
// names. It finds only what the caller of the request reaches: a run of another owner is like one that does not exist.
//
// Of this module it may import proto, gateway/auth, gateway/paging, gateway/rpcerror, gateway/runview, workflows/names and
// workflows/visibility.
package runindex
