// Package lifecycle is the life of an attempt that can be paused, captured, restarted, stopped and left while it runs. Each
// executor carries the steps out by its own means; the package decides which of them are allowed. It may import
// activities/executor and the standard library.
//
//	          ┌────────────── captured, restarted ──────────────┐
//	          ▼                                                 │
//	start ▶ Running ── capture ──▶ Capturing ───────────────────┤
//	        │     └─── restart ──▶ Restarting ──────────────────┘
//	        │                          │
//	        └───────────┬──────────────┘
//	        stop        │  leave         ends by itself
//	      ┌─────────────┼────────────────────┐
//	      ▼             ▼                    ▼
//	   Stopping      Leaving               Ended
//	      │ ends        │ is given up
//	      ▼             ▼
//	   Stopped        Left, for a later worker
//
// Beside its phase, an attempt is paused or not. It is paused while it is captured. Stopping takes precedence: whatever was in
// progress then ends without an effect on the phase.
package lifecycle
