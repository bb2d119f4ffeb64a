// Package inprocess calls an HTTP handler of the same process as if it were a server: doors of the gateway that speak
// another protocol make their calls through it, so that validation, roles, limits, time-outs, error codes and the audit are
// those of all other calls.
//
// Of this module it imports nothing.
package inprocess
