// Package capture has the activity Capture, by which a node makes the archive of a named environment: of an attempt that it runs, or of
// an image.
//
//	Capture ──▶ executor.Capturer ──▶ environments.Writer ──▶ store
//	   └── heartbeats: how much is stored
//
// Each try writes a copy of its own below the archive that is reserved for the node. A refusal is an error that is not retried, and
// whose text is for people; any other is a fault of the node, after which the archive is made anew.
//
// The package may import proto, activities/environments, activities/executor, the leaf activities/heartbeat and the Temporal SDK.
package capture
