// Package election provides the activity Own, through which one control process owns the placement queue. It imports proto
// and Temporal.
//
//	started ── first beat acknowledged ──> owns the queue ── beats, each renews the lease ──┐
//	   └── not acknowledged ──> ended          │  ▲─────────────────────────────────────────┘
//	                                           └── stopped, taken back, or the lease has run out ──> ended
package election
