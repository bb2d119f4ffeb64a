// Package gateway is the service that users and programs talk to. It submits runs to Temporal and reports on them from Temporal,
// the Run workflow and the store. It keeps no durable state of its own, so several gateways may serve one cluster.
//
//	client ── Connect, gRPC, gRPC-Web ──> Handler
//	                                        │
//	 SubmitRun, RerunRun, CancelRun ────────┼──> Temporal: start, signal
//	            ListRuns, ListDeadLetters ──┼──> Temporal: visibility
//	 PauseRun, HoldTask, ApproveTask, ... ──┼──> Temporal: update
//	            RetryDeadLetter, RetryRun ──┼──> Temporal: update, or the next generation
//	            ExplainTask, PlanRun ───────┼──> workflow Explain
//	            VpsService ─────────────────┼──> as SubmitRun; package vps
//	            TaskService ────────────────┼──> as SubmitRun; ListTasks: visibility, registry and readers
//	            WorkflowService ────────────┼──> activities/library
//	            ScheduleService ────────────┼──> activities/schedules
//	            NodeService ────────────────┼──> activities/registry
//	            EnvironmentService ─────────┼──> workflow Environment, activities/environments; package environments
//	            GetRun ──────── reader ─────┼──> Temporal: describe and query while
//	            WatchRun ─┐       │         │    open, the result when closed; store
//	            logs -f ──┴─ one poller a run
//	            ListInstances ──────────────┼──> the same, and queries of the children of the run
//	            ListRunEvents ──────────────┼──> store, and a query while open; of all runs: visibility
//	            StreamRunLogs ──────────────┴──> log store
//
// Package edge handles calls before they reach this package. Package runview reads runs, package paging makes page tokens,
// package runindex finds runs, package tasklist lists their tasks, package runevents lists their events, package runlogs sends
// their logs, package tunnel connects clients to sessions on nodes, package sshdoor lets SSH clients in, package openapi serves
// the document of the REST paths, and package rpcerror gives errors their codes.
//
// It may import proto, workflows/condition, workflows/definition, workflows/names, workflows/sshkey, workflows/nearest, workflows/phrase,
// workflows/visibility, activities/store, activities/environments, activities/logs, activities/library, activities/schedules, activities/registry,
// activities/executor, activities/sessions/caller, activities/sessions/wire, activities/grants, activities/metrics, activities/signing, activities/secrets/vault, and of Temporal the client side of the SDK and its API.
package gateway
