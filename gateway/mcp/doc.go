// Package mcp offers the fleet to agents by the Model Context Protocol: as tools, resources and a prompt, over HTTP in a
// gateway and over standard input and output in a process of its own.
//
//	tools/call ──> tool ───────> arguments ──> services ──────────> projection ──> answer
//	               the table     checked by    a call like that     the fields     small; what tasks
//	               in table.go   the schema    of any client        of the tool    left is marked
//
// A line of the table in table.go makes a tool of a call: its description is the comment of the call, its schemas are those
// of the messages, and whether it writes, and hence takes `preview`, stands in the rules of the call. Few tools make several
// calls; each of these has a file of its own.
//
// Every error of a tool is an answer for the model, with the remedy; errors of the protocol are left to clients that do not
// speak it.
//
// Of this module it may import proto, gateway/auth, gateway/inprocess, gateway/openapi, gateway/singletask,
// workflows/definition, workflows/definition/source and workflows/nearest.
package mcp
