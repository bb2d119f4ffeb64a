// Package audit records who did what on the gateways of a deployment, in the store that these share: each call that changes
// something, and each one that was refused for want of a token or of a role.
//
//	call ──> Interceptor ──> handler ──> Recorder.Record ──┐ wait until it is stored, some seconds at most
//	         Lock.OnRefused ───────────> Recorder.Note ────┤
//	                                                       v
//	                               one writer ──> audit/<day>/<time>-<gateway>-<number>: all entries that wait
//
// Entries are only added. Those of an answered call are lost only if the store was away for longer than the wait, and the
// gateway is killed before the store is back. No entry has what a call carried: no definition, input, environment or secret.
//
// Of this module it may import proto, activities/store, activities/store/storekey, gateway/auth, gateway/paging and
// gateway/rpcerror.
package audit
