// Package mcptool offers the tools of MCP (Model Context Protocol) servers to an agent. A server is a program that the
// shell executor starts and that speaks over its standard input and output, or a service that speaks streamable HTTP.
//
//	           Connect                    Call                      Close
//	closed ──────────────> connected ─────────────> connected ──────────────> closed
//	   ^  30 s at most         │       10 min at most
//	   │                       │ the server ends, or the connection breaks
//	   └── the next Call <── lost
//	       connects again
//
// A call that a server leaves unanswered is never repeated: its outcome reports that to the model, and the next call
// reconnects. Errors of servers are outcomes for the model; only Connect fails an attempt.
//
// The package imports proto, activities/executor, activities/executor/subagent/tool and the library of the protocol.
package mcptool
