// Package session keeps sessions of agents alive on a node, and sends them messages. A session is a program that reads and
// prints a stream of JSON lines; whoever attached it serves it on a socket in a folder that the user's processes share. It
// may import proto and activities/executor.
//
//	Attach: program ◀── messages, one at a time ── queue ◀── socket ◀── Dial, Ask: relays
//	           └── lines ──▶ log, and the relay whose turn it is
//
// A turn begins when the program is given a message and ends with the next result line. A relay that goes away in its turn
// interrupts the program; the next turn begins at most interruptWait later, and the result that is still owed is skipped.
package session
