// Package submission checks requests for runs and starts them.
//
//	SubmitRun, TriggerWorkflow, CreateVps ──> Submit ──> Prepare ──> Start
//	SubmitTask, PlanRun ──────────────────────────────> Prepare         ▲
//	RerunRun: the definition and the input of another run ──────────────┘
//
// Prepare has the definition checked, fills in defaults and records who submits. Start claims the idempotency key in the store,
// packs the input and starts the workflow. A key gives its run a fixed id, so one request never starts two runs, not even while
// the store is down.
//
// Of this module it may import proto, activities/artifacts, activities/owners, activities/store, activities/store/storekey, gateway/auth, gateway/definitions,
// gateway/rpcerror, gateway/runindex, gateway/runview, workflows/definition, workflows/definition/source, workflows/names,
// workflows/structs and workflows/visibility.
package submission
