// Package paging encodes and decodes the page tokens of lists, and defines the order of executions in lists of runs.
//
// Of this module it may import gateway/rpcerror, workflows/names and, in tests, proto.
package paging
