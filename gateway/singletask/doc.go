// Package singletask makes the definition of a run of one task out of the request for it.
//
// It may import proto.
package singletask
