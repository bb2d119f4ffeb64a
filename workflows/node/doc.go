// Package node has the workflow Node: the registry entry of a machine's name, and the single writer of what is known of it.
//
//	register ──> active <── undrain ── draining        the worker beats
//	   ▲           │ ──── drain ─────────▲ │
//	   │           └──── it left, or was silent for too long
//	   │                        ▼
//	   └──────────────────── offline ── remove, or 7 days ──> forgotten
//
// It imports proto, workflows/names, workflows/options and workflows/phrase, and of Temporal only what workflow code may.
package node
