// Package rpcerror maps errors to the codes that clients of the gateway receive, and explains JSON that is no request.
//
// Of this module it may import workflows/nearest, and activities/store and activities/registry for their errors.
package rpcerror
