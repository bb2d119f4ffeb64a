// Package election provides the activity Lead, through which one control process leads. It imports proto
// and Temporal.
//
//	started ── first beat acknowledged ──> leads ── beats, each renews the lease ──┐
//	   └── not acknowledged ──> ended          │  ▲─────────────────────────────────────────┘
//	                                           └── stopped, taken back, or the lease has run out ──> ended
//
// The server declares a leader dead after the heartbeat time-out of the activity, which each leader sets to its Timing.Lease. The
// leader stops earlier, by the time-out that the server has.
package election
