// Package wire carries sessions over connections between clients, gateways and nodes. Each connection carries many streams.
//
//	Dial ── HTTP/1.1, Upgrade ──> Accept      one connection
//	  │                             │
//	NewSession ───── yamux ───── NewSession   pings both ways; each side may open streams
//	  │                             │
//	Conn ──────── blocks ────────> Conn       half-close, clean and unclean ends
//	  │                             │
//	WriteMessage ─────────────> ReadMessage   SessionHeader, SessionReply, then whatever the kind of the session defines
//
// A yamux stream cannot be aborted once half of it is closed, and it ends in the same way whether its other side has closed
// it or the connection was lost. Therefore a stream consists of blocks, each preceded by its length, and ends with an empty
// block. The end of the underlying yamux stream means that the other side neither sends nor reads any more.
//
// It imports proto, yamux and the standard library only.
package wire
