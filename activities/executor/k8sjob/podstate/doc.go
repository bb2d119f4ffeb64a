// Package podstate derives from the status of a Job's pod what the pod waits for, and how it ended.
//
// Of this module it may import activities/executor and proto.
package podstate
