// Package orchestrator has the activities of the control process, which do what a run cannot do in its workflow code.
//
//	Control      conditions, and what a run reads from the store and writes to it
//	Placement    the placement queue: Place, AwaitPlacement, Explain
//	Children     child workflows: Prepare, ChildRunEnds, AwaitRuns, LoadWorkflow
//	Locks        messages between runs and locks, and which holders may still run something
//	Notifier     what people are told about events of runs: PlanNotification, SendNotification
//	Environments archives that a node has stored for an environment: Keep, Discard
//
// A broken system is an error, which Temporal retries. A fault in a request is part of the answer.
//
// # Placement
//
// The answer of Place to a run is repeated until the run has acknowledged it by number. AwaitPlacement reports news to
// the newest waiting execution of the run:
//
//	Place ──> reported, unacknowledged ──(next Place with its number)──> acknowledged
//	             └──(a Place without its number)──> the claims are released, and the run asks for all of them again
//
// It imports proto, workflows/names, workflows/condition, workflows/dataconverter, workflows/definition, workflows/limits,
// workflows/notification, workflows/visibility, the Temporal SDK, the leaves activities/heartbeat and activities/results, and
// activities/placement, activities/registry, activities/grants, activities/signing, activities/store, activities/artifacts,
// activities/environments, activities/library, activities/logs, activities/notifications, activities/owners and
// activities/metrics.
package orchestrator
