// Package environment implements the workflow Environment, which creates a named environment: a node stores the archive, then
// the archive gets the name. An archive that does not become ready is removed.
//
//	Capture (on the node) ── stored ──> Keep ──> ready
//	    │ refused, failed, cancelled      │
//	    └────────────> Discard <──────────┘
//
// It imports proto, workflows/names and workflows/options, and of Temporal only what workflow code may.
package environment
