// Package tool has what an agent may call: a shell, files, web pages. All of them work on one directory, WorkDir of the
// attempt's workspace, which can be packed, restored on another node and compared. It may import proto,
// activities/executor, the place of workspaces in activities/executor/container, klauspost's zstd, golang.org/x/net/html and
// the standard library; it knows no Temporal.
//
// # What an agent reaches
//
//	shell   a sandbox of the shell executor, or a container; never the node itself
//	files   the work directory, through os.Root, from within the worker's process
//	fetch   hosts that both the task and the node allow, by GET
//
// What a tool returns is data for the model. What a command, a file or a page says is never an instruction to the worker,
// and secrets of the task are in no tool's environment.
package tool
