// Package election provides the activity Lead, through which one control process leads. It imports proto
// and Temporal.
//
//	started ── first beat acknowledged ──> leads ── beats, each renews the lease ──┐
//	   └── not acknowledged ──> ended          │  ▲─────────────────────────────────────────┘
//	                                           └── stopped, taken back, or the lease has run out ──> ended
package election
