// Package cluster connects a node to the Kubernetes clusters that its flags name, and watches which of them it reaches.
//
// [Open] reads each kubeconfig once and reports every mistake in it. After that, each cluster is probed at an interval,
// to find out whether it accepts the credentials of the node:
//
//	          an answer              no answer, or no valid credentials
//	unknown ────────────> reached ─────────────────────────────────────> away
//	   │                     ^                                            │
//	   │                     └──────────────── an answer ─────────────────┘
//	   └──────────────────── no answer ──────────────────────────────────>┘
//
// Each change is logged once, with the reason. A kubeconfig that has changed on disk is read again before the probe, so
// that a tool may renew the credentials: the client of a cluster stays the same and sends its next request with the new
// ones.
//
// The package imports proto, the official client of Kubernetes, and the standard library.
package cluster
