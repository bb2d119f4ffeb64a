// Package tool provides the tools that an agent may call: a shell, files and web pages. The shell and the file tools
// work on one directory, WorkDir of the attempt's workspace, which can be packed, restored on another node and
// compared. It may import proto, activities/executor, activities/hostlist, the place of workspaces in activities/executor/container,
// klauspost's zstd, golang.org/x/net/html and the standard library; it does not depend on Temporal.
//
// # What an agent reaches
//
//	shell   a sandbox of the shell executor, or a container; never the node itself
//	files   the work directory, through os.Root, from within the worker's process
//	fetch   hosts that both the task and the node allow, by GET
//
// The result of a tool is data for the model. The worker never interprets the content of a command's output, a file or
// a page as an instruction, and no tool has secrets of the task in its environment.
package tool
