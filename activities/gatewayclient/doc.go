// Package gatewayclient connects a node or a client to the gateways of its fleet, with its token.
//
//	request ──> gateway in use ── answers ──────────────> done
//	              ^    │ silent, or has another store
//	              │    v
//	              └── the next one of the list
//
// A List names the gateways. A Conn sends requests to the one in use, and moves to the next one when it is silent. If the
// connection can identify stores, it uses only gateways that share one store.
//
// It imports the standard library and Connect only.
package gatewayclient
