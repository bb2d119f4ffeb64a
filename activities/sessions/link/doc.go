// Package link connects a node to a gateway, so that sessions reach the node's attempts although the node
// listens on no port.
//
//	dial ── LinkHello ──> accept streams ── ticket ──> Serve
//	  ^                        │
//	  └── back-off, jitter ────┘ lost
//
// The loss of a link ends its streams and has no other effect. A node with several gateways is linked to the one that it uses
// for everything else, and moves with it.
//
// It imports proto, activities/gatewayclient, activities/sessions/ticket and activities/sessions/wire.
package link
