// Package program leads agents by programs on the node, such as claude-code, that run headless and print a stream of JSON
// lines. It may import proto and activities/executor.
//
//	start ──▶ lines ──▶ result ──▶ grace ──▶ ended
//	            │                    ▲
//	            ├─ no result ────────┤ (the program ended by itself)
//	            └─ stall, cancel ────┘ (its tree is ended)
package program
