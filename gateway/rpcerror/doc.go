// Package rpcerror maps errors to the codes that clients of the gateway receive, and explains JSON that is no request.
//
// Of this module it may import activities/store and activities/registry, whose errors it knows, and workflows/nearest.
package rpcerror
