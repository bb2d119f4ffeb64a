// Package vps implements VpsService, with which people create, list and stop machines to log in to. A machine is a task of type
// vps. A machine created here is the only task of its own run.
//
//	CreateVps ──> definition of one task ──> Runs.Submit
//	ListVps   ──> Tasks.ListTasks of the type, and of each run its state and its definition
//	StopVps, RestartVps, KillVps ──> which task of the run is the machine? ──> Runs
//
// Of this module it may import proto, gateway/rpcerror, workflows/definition/source and workflows/names.
package vps
