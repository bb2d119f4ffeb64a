// Package runcommands serves the calls of RunService that steer open runs and their tasks.
//
//	PauseRun, HoldTask, KillTask, ... ──> updates ──────────┐
//	ApproveTask, RejectRun, ... ────────> decisions: sign ──┴──> gateway/runupdate
//	CancelRun ──────────────────────────> cancellation ──> a signal to the workflow, or
//	                                      forcedCancel ──> termination: the run and every workflow below it
//
// Of this module it may import proto, activities/signing, activities/store, activities/store/storekey, gateway/auth,
// gateway/rpcerror, gateway/runindex, gateway/runupdate, gateway/runview, workflows/definition, workflows/names and workflows/phrase.
package runcommands
