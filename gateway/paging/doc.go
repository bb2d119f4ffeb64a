// Package paging makes and reads the page tokens of lists, and orders executions as lists of runs show them.
//
// Of this module it may import gateway/rpcerror, workflows/names and, in tests, proto.
package paging
