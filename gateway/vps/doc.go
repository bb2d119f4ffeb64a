// Package vps answers the calls of VpsService: people make machines to log in to, list them, and end them. A machine is a task
// of type vps; one that is made here is the only task of a run of its own.
//
//	CreateVps ──> definition of one task ──> Runs.Submit
//	ListVps   ──> Tasks.ListTasks of the type, and of each run its state and its definition
//	StopVps, RestartVps, KillVps ──> which task of the run is the machine? ──> Runs
//
// Of this module it may import proto, gateway/rpcerror, workflows/definition/source and workflows/names.
package vps
