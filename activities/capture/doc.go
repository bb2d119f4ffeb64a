// Package capture provides the activity Capture, which makes the archive of a named environment on a node: from an attempt that
// runs there, or from an image.
//
//	Capture ──▶ executor.Capturer ──▶ environments.Writer ──▶ store
//	   └── heartbeats: how much is stored
//
// Each attempt of the activity writes its own copy below the reserved archive. A refusal is not retried, and its text is written
// for people. Any other error is a fault of the node, and the activity is retried from the start.
//
// The package may import proto, activities/environments, activities/executor, the leaf activities/heartbeat and the Temporal SDK.
package capture
