// Package session keeps agent sessions alive on a node and sends messages to them. A session is a program that reads
// and prints JSON lines. The process that attached the session serves it on a socket in a folder that the user's
// processes share. It may import proto, activities/executor and activities/statedir.
//
//	Attach: program ◀── messages, one at a time ── queue ◀── socket ◀── Dial, Ask: relays
//	           └── lines ──▶ log, and the relay whose turn it is
//
// A turn begins when the program receives a message and ends with the next result line. A relay that disconnects during
// its turn interrupts the program. The next turn begins at most interruptWait later, and the overdue result is skipped.
package session
