// Package rpcerror gives errors the codes that clients of the gateway see.
//
// Of this module it may import activities/store and activities/registry, whose errors it knows.
package rpcerror
