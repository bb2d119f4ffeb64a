// Package singletask builds the definition of a run from a request for a single task.
//
// It may import proto.
package singletask
