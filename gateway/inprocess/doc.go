// Package inprocess calls an HTTP handler of the same process as if it were a server. The parts of the gateway that speak
// another protocol call the services through it, so that validation, roles, limits, time-outs, error codes and the audit
// log apply as to any other call.
//
// Of this module it imports nothing.
package inprocess
