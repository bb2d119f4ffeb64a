// Package cluster connects a node to the clusters of Kubernetes that its flags name, and watches which of them it reaches.
//
// [Open] reads each kubeconfig once and reports every mistake in it. After that, a cluster is asked at an interval whether it
// takes the credentials of the node:
//
//	          an answer              no answer, or no valid credentials
//	unknown ────────────> reached ─────────────────────────────────────> away
//	   │                     ^                                            │
//	   │                     └──────────────── an answer ─────────────────┘
//	   └──────────────────── no answer ──────────────────────────────────>┘
//
// Each change is logged once, with the reason. A kubeconfig that has changed on disk is read again before the question, so a
// tool may renew the credentials: the client of a cluster stays the same and sends its next request with the new ones.
//
// The package imports proto, the official client of Kubernetes, and the standard library.
package cluster
