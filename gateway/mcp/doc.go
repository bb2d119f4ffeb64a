// Package mcp offers the fleet to agents by the Model Context Protocol, as tools, resources and a prompt. A gateway serves it over
// HTTP, and a separate process serves it over standard input and output.
//
//	tools/call ──> tool ───────> arguments ──> services ──────────> projection ──> answer
//	               the table     checked by    a call like that     the fields     small; what tasks
//	               in table.go   the schema    of any client        of the tool    left is marked
//
// A row of the table in table.go turns a service call into a tool. The description comes from the comment of the call, the
// schemas come from its messages, and the rules of the call say whether it writes and therefore accepts `preview`. The few
// tools that make several calls each have their own file.
//
// Every error of a tool is a result that the model can read, with the remedy. Errors at the protocol level are for malformed
// requests only.
//
// Of this module it may import proto, gateway/auth, gateway/inprocess, gateway/openapi, gateway/singletask,
// workflows/definition, workflows/definition/source, workflows/nearest and workflows/structs.
package mcp
