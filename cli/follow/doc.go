// Package follow shows a run from its start, or from now, to its end: the progress
// on standard error, logs on request, and the final result. If the command owns the
// run, an interrupt ends the run.
//
//	following ── interrupt ──> cancelling ── second interrupt, or ForceAfter ──> killing ── KilledEndTimeout ──> forcing
//	    │                          │                                                │                               │
//	    └──────────────────────────┴──────────> end of the run <───────────────────┴───────────────────────────────┘
//
// Killing and forcing apply to a run in this process. If the run has finally, it is not
// forced: the command waits for finally, and only an interrupt that comes after the
// command has said so cancels finally, which then ends like the tasks. A second interrupt
// leaves a run on a gateway, which ends without the command.
//
// It may import proto, cli/client, cli/exit, cli/output, cli/tui, drawing/words and workflows/phrase.
package follow
