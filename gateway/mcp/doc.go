// Package mcp offers the fleet to agents by the Model Context Protocol, as tools, resources and a prompt. A gateway serves it over
// HTTP, and a separate process serves it over standard input and output.
//
//	tools/call ──> tool ───────> arguments ──────────> services ──────> answer
//	               the table     checked by the        a call like      the response without the fields
//	               in table.go   schema, decoded to    that of any      of the table in answer.go; what
//	                             the request           client           tasks left is cut and marked
//
// A row of the table in table.go turns a service call into a tool. The OpenAPI document has the comment of the call, which
// describes the tool, and the schemas of its messages. The rules of the call say whether it writes and therefore accepts
// `preview`. The few tools that make several calls each have their own file. Tools have the raw handlers of the protocol library:
// its typed ones read numbers as doubles, and name no remedy for an argument that does not fit.
//
// Every error of a tool is a result that the model can read, with the remedy. Errors at the protocol level are for malformed
// requests only.
//
// Of this module it may import docs, proto, gateway/auth, gateway/inprocess, gateway/openapi, gateway/singletask,
// workflows/definition, workflows/definition/source, workflows/nearest and workflows/structs.
package mcp
