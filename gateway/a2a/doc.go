// Package a2a offers stored workflows to other agents by the Agent2Agent protocol, version 1.0, over JSON-RPC and REST.
//
//	agent card   <── the stored workflows that say `a2a: true`, a skill each
//	SendMessage  ──> a run of a skill, or the decision of an approval that a run waits for
//	GetTask      <── a run: its state, and the results of its tasks as artifacts
//
// A task of the protocol is a run and has the ID of the run. A context of the protocol is a batch. The package keeps no
// state: it calls the services as any client does, so a caller has the same permissions here as elsewhere, and any gateway
// of a deployment can answer any request. Push notifications are not offered.
//
// The bindings come from a2a-go. Requests are checked before they reach the bindings, so that each error states its reason:
// [checkEnvelopes] checks JSON-RPC, [checkREST] and restStream handle HTTP+JSON.
//
//	run                 task
//	pending             SUBMITTED
//	pending_approval    AUTH_REQUIRED until an operator approves or rejects the run; as running once the run has started
//	running, paused     WORKING, or INPUT_REQUIRED while a task of type approval waits
//	completed           COMPLETED
//	failed              FAILED
//	cancelled           CANCELED
//	rejected            REJECTED
//
// Of this module it may import proto, gateway/auth, gateway/inprocess, workflows/definition,
// workflows/nearest and workflows/structs.
package a2a
