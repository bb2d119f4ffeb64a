// Package placement decides which node runs which task. It holds the single queue of all requests
// for a node, filters and scores the nodes, accounts for what it has assigned, down to parts of GPUs
// and NUMA nodes, and can always explain why a task waits.
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
// An attempt that holds a place on a node without an assignment from this queue is foreign: an
// earlier queue placed it, and this queue knows it only from the snapshots of the nodes.
//
// The requests of the members of a gang are placed in one decision of a pass, all or none, once all of them are there. Each then
// is an assigned request like any other. The members form a request class of their own.
//
// Requests that ask for the same things form a request class, and the queue evaluates nodes once
// per class. Within a class, the requests of one task of a run form a line. Each class keeps the nodes that could ever run it in a pool, sorted by their last
// known state, and reads two logs of the nodes that have changed since. So neither a new snapshot
// nor a new request costs a scan of the whole fleet. While more nodes have room than the queue can
// evaluate for each request, it takes the best of a sample.
//
// The parts, each with its own state:
//
//	Queue         the interface to runs and to the registry of nodes
//	  scheduler   makes passes: assigns requests, explains failures, gives requests up
//	    order         decides which request is next: by priority, by the levels of the accounts of
//	                  owners and runs, and by age
//	    picker        finds the best node for a class
//	    reservations  keep room that becomes free for the most urgent requests that fit no node; a gang has one on each of
//	                  the nodes that it needs, or none
//	    prefetchGuard keeps the queues of nodes free for more urgent requests
//	    reasons       explain why requests wait
//	      evaluator   applies the filters to a node and a request
//	  demand      runs, requests, request classes, delays, time-outs and reports; no nodes
//	  fleet       nodes, node classes and health records; no requests
//	    ledger        what claims and foreign attempts hold on machines
//	    fleetLog      changes that the classes have not seen
//	  accounts    what owners and runs hold and have used lately
//	  durations   how long attempts of the same task have taken
//
// demand and fleet do not use each other. A spec is what a request asks for, and a claim is the
// place on a node that it holds.
//
// The package is pure: it starts no goroutine, does no I/O and takes its clock and its randomness
// as parameters. It may import proto, workflows/names, workflows/policy and the standard library,
// and knows nothing of Temporal.
package placement
