// Package follow shows a run from its start, or from now, to its end: the progress
// on standard error, logs if asked for, and how the run ended. For a run that the
// command owns it turns interrupts into the end of the run.
//
//	following ── interrupt ──> cancelling ── second interrupt, or ForceAfter ──> killing ── KilledEndTimeout ──> forcing
//	    │                          │                                                │                               │
//	    └──────────────────────────┴──────────> end of the run <───────────────────┴───────────────────────────────┘
//
// Killing and forcing are for a run in this process. A second interrupt leaves one on a
// gateway, which ends by itself.
//
// It may import proto, cli/client, cli/exit, cli/output, cli/tui and drawing/words.
package follow
