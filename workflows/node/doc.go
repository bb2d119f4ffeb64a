// Package node implements the workflow Node: the registry entry for the name of a machine, and the single writer of its record.
//
//	register ──> active <── undrain ── draining        the worker beats
//	   ▲  ▲        │ ──── drain ─────────▲ │
//	   │  │        ├── it left attempts ──> restarting ── no worker in time ──┐
//	   │  └────────│────────────────────────────┘                             │
//	   │           └── it left nothing, or was silent for too long            │
//	   │                        ▼                                             │
//	   └──────────────────── offline <────────────────────────────────────────┘
//	                            └── remove, or 7 days ──> forgotten
//
// It imports proto, workflows/names, workflows/options, workflows/phrase and workflows/policy, and of Temporal only what workflow code may.
package node
