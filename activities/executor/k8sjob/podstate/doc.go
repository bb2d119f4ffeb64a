// Package podstate reads from the pod of a Job what it waits for, and how it ended.
//
// Of this module it may import activities/executor and proto.
package podstate
