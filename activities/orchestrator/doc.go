// Package orchestrator has the activities of the control process: what a run does outside of its workflow code.
//
//	Control      conditions, and what a run reads from the store and writes there
//	Placement    the placement queue: Place, AwaitPlacement, Explain
//	Children     child workflows: Prepare, ChildRunEnds, AwaitRuns, LoadWorkflow
//	Locks        what runs and locks ask each other, and which holders may still run something
//	Environments what an archive becomes that a node has stored: Keep, Discard
//
// A broken system is an error, which Temporal retries; what is wrong with a request is part of the answer.
//
// # Placement
//
// The answer of Place to a run is repeated until the run has acknowledged it by number; AwaitPlacement reports what is
// new to the newest execution of the run that waits:
//
//	Place ──> reported, unacknowledged ──(next Place with its number)──> acknowledged
//	             └──(a Place without its number)──> the claims are released, and the run asks for all of them again
//
// It imports proto, workflows/names, workflows/condition, workflows/definition, workflows/limits, the Temporal SDK, the leaves
// activities/heartbeat and activities/results, and activities/placement, activities/grants, activities/signing, activities/store,
// activities/environments,
// activities/library and activities/metrics.
package orchestrator
