// Package rpcerror maps errors to the codes that clients of the gateway receive.
//
// Of this module it may import activities/store and activities/registry, whose errors it knows.
package rpcerror
