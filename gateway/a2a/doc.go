// Package a2a offers stored workflows to other agents by the Agent2Agent protocol, version 1.0, over JSON-RPC and REST.
//
//	agent card   <── the stored workflows that say `a2a: true`, a skill each
//	SendMessage  ──> a run of a skill, or the decision of an approval that a run waits for
//	GetTask      <── a run: its state, and what its tasks have left as artifacts
//
// A task of the protocol is a run, and its id is that of the run; a context of the protocol is a batch. Nothing is kept
// here: the services are called as any client calls them, so that the caller may do and see here what it may anywhere, and
// any gateway of a deployment answers any request. Push notifications are not offered.
//
// The bindings are those of a2a-go. Before them requests are checked, so that each error has its reason: [checkEnvelopes]
// for JSON-RPC, [checkREST] and restStream for HTTP+JSON.
//
//	run                 task
//	pending             SUBMITTED
//	pending_approval    AUTH_REQUIRED, until an operator approves or rejects the run; once it has started as running
//	running, paused     WORKING, or INPUT_REQUIRED while a task of type approval waits
//	completed           COMPLETED
//	failed              FAILED
//	cancelled           CANCELED
//	rejected            REJECTED
//
// Of this module it may import proto, gateway/auth, gateway/inprocess and workflows/nearest.
package a2a
