// Package wire carries sessions: connections between clients, gateways and nodes with many streams in each.
//
//	Dial ── HTTP/1.1, Upgrade ──> Accept      one connection
//	  │                             │
//	NewSession ───── yamux ───── NewSession   pings both ways; each side may open streams
//	  │                             │
//	Conn ──────── blocks ────────> Conn       half-close, clean and unclean ends
//	  │                             │
//	WriteMessage ─────────────> ReadMessage   SessionHeader, SessionReply, then what the kind of the session says
//
// A stream of yamux cannot be given up once half of it is closed, and ends the same way whether its other side has closed it
// or the connection was lost. Streams are therefore made of blocks, each with its length before it, and end with an empty
// one. yamux's own end of a stream means that its other side neither sends nor reads any more.
//
// It imports proto, yamux and the standard library only.
package wire
