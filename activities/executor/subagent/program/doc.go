// Package program runs agents that are driven by programs on the node, such as claude-code, which run headless and
// print JSON lines. It may import proto and activities/executor.
//
//	start ──▶ lines ──▶ result ──▶ grace ──▶ ended
//	            │                    ▲
//	            ├─ no result ────────┤ (the program ended by itself)
//	            └─ stall, cancel ────┘ (its tree is ended)
package program
