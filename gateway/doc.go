// Package gateway is the service that users and programs talk to. It submits runs to Temporal and reports on them from Temporal,
// the Run workflow and the store. It keeps no durable state of its own, so several gateways may serve one cluster.
//
// This package wires the handlers of the services together and serves them. Each noun has a package of its own:
//
//	client ── Connect, gRPC, gRPC-Web ──> Handler
//	                                        │
//	 SubmitRun, RerunRun ───────────────────┼──> submission ──> Temporal: start
//	 PauseRun, HoldTask, ApproveTask, ... ──┼──> runcommands ──> runupdate ──> Temporal: update
//	 CancelRun ─────────────────────────────┼──> runcommands ──> Temporal: signal, terminate
//	 ListDeadLetters, PurgeDeadLetter ──────┼──> runretry ──> Temporal: visibility; store
//	 RetryDeadLetter, RetryRun ─────────────┼──> runretry ──> Temporal: update, or the next generation
//	 ExplainTask, PlanRun ──────────────────┼──> explanation ──> workflow Explain
//	 ListRuns, GetRun, ListInstances, ... ──┼──> rundetails ──> runindex: visibility
//	                                        │                ──> runview: describe and query while open,
//	                                        │                    the result when closed; store
//	 ListRunEvents ─────────────────────────┼──> rundetails ──> runevents: store, and a query while open
//	 WatchRun, StreamRunLogs, ListRunLogs ──┼──> runstreams ──> one poller a run; runlogs: log store
//	 VpsService ────────────────────────────┼──> vps ──> submission
//	 TaskService ───────────────────────────┼──> tasks ──> submission; tasklist
//	 WorkflowService ───────────────────────┼──> workflows ──> activities/library
//	 ScheduleService ───────────────────────┼──> schedules ──> activities/schedules
//	 NodeService ───────────────────────────┼──> nodes ──> activities/registry
//	 EnvironmentService ────────────────────┼──> environments ──> workflow Environment, activities/environments
//	 OwnerService ──────────────────────────┼──> owners ──> activities/owners
//	 BlobService ───────────────────────────┴──> blobs ──> activities/store
//
// Package edge handles calls before they reach a handler. Package definitions checks definitions, package paging makes page
// tokens, package tunnel connects clients to sessions on nodes, package sshdoor lets SSH clients in, package openapi serves the
// document of the REST paths, and package rpcerror gives errors their codes.
//
// It may import proto, workflows/definition, workflows/names, workflows/sshkey, activities/store, activities/environments,
// activities/library, activities/schedules, activities/registry, activities/executor, activities/sessions/caller,
// activities/sessions/wire, activities/grants, activities/metrics, activities/notifications, activities/owners, activities/signing, activities/secrets/vault, and of Temporal
// the client side of the SDK and its API.
package gateway
