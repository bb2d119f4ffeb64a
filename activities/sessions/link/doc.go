// Package link connects a node to a gateway, so that sessions reach what it runs although it opens no port.
//
//	dial ── LinkHello ──> accept streams ── ticket ──> Serve
//	  ^                        │
//	  └── back-off, jitter ────┘ lost
//
// A link that is lost ends its streams, and nothing else.
//
// It imports proto, activities/sessions/ticket and activities/sessions/wire.
package link
