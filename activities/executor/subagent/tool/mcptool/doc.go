// Package mcptool offers the tools of servers of the Model Context Protocol to an agent. A server is a program that the
// shell executor starts and that speaks over its standard input and output, or a service that speaks streamable HTTP.
//
//	           Connect                    Call                      Close
//	closed ──────────────> connected ─────────────> connected ──────────────> closed
//	   ^  30 s at most         │       10 min at most
//	   │                       │ the server ends, or the connection breaks
//	   └── the next Call <── lost
//	       connects again
//
// A call that a server leaves without an answer is never repeated: its outcome tells the model so, and the next call connects
// again. Errors of servers are outcomes for the model; only Connect fails an attempt.
//
// The package imports proto, activities/executor, activities/executor/subagent/tool and the library of the protocol.
package mcptool
