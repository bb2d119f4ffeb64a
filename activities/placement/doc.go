// Package placement decides which node takes which task. It holds the one
// queue of everything that wants a node, filters and scores the nodes, counts
// what it has given out, and always knows why a task waits.
//
// A request goes through these states:
//
//	           Place              Release, newer claim, Forget
//	waiting ----------> assigned --------------------------------> gone
//	   |  |                                                          ^
//	   |  +----------------------------------------------------------+
//	   |                                                             |
//	   +--> given up: no node could ever meet it ---------------------+
//
// The package is pure: it starts no goroutine, does no I/O and takes its clock
// as a parameter. It may import proto, workflows/names and the standard
// library, and knows nothing of Temporal.
package placement
