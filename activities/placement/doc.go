// Package placement decides which node takes which task. It holds the one
// queue of everything that wants a node, filters and scores the nodes, counts
// what it has given out, down to the single GPU and NUMA node, and always knows
// why a task waits.
//
// A request goes through these states:
//
//	refused twice or more        Place              Release, newer claim, Forget
//	put aside -------> waiting ----------> assigned --------------------------------> gone
//	   |    its time    |  |                                                          ^
//	   |                |  +----------------------------------------------------------+
//	   |                |                                                             |
//	   |                +--> given up: no node could ever meet it --------------------+
//	   +------------------------------------------------------------------------------+
//
// What holds a node's place and was not given out by this queue is foreign: it
// was placed by the queue before it, and is known from what nodes show.
//
// Requests that ask for the same are of one class, and everything is found out
// for a request class at a time. Each class keeps the nodes that may ever meet it in a
// pool, sorted by what was last known of them, and reads from two logs which
// nodes have changed since: so neither a new snapshot nor a new request costs a
// look at the whole fleet. While more nodes have room than can be looked at
// each time, the best of a sample is taken.
//
// The package is pure: it starts no goroutine, does no I/O and takes its clock
// and its randomness as parameters. It may import proto, workflows/names,
// workflows/policy and the standard library, and knows nothing of Temporal.
package placement
