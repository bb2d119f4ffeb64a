// Package audit records who did what on the gateways of a deployment, in the store that they share: each call that changes
// something, and each call that was refused for lack of a token or a role.
//
//	call ──> Interceptor ──> handler ──> Recorder.Record ──┐ wait until it is stored, some seconds at most
//	         Lock.OnRefused ───────────> Recorder.Note ────┤
//	                                                       v
//	                               one writer ──> audit/<day>/<time>-<gateway>-<number>: all entries that wait
//
// Gateways only append entries. Those of an answered call are lost only if the store was down for longer than the wait and
// the gateway is killed before the store is back. No entry has the contents of a call: no definition, input, environment or
// secret.
//
// Of this module it may import proto, activities/store, activities/store/storekey, gateway/auth, gateway/paging and
// gateway/rpcerror.
package audit
