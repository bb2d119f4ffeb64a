// Package program finds and builds the program of dev/kubernetes, a real Kubernetes. The build takes minutes, so the
// result stays in the user's cache folder under a hash of its sources, where all checkouts and test processes find it.
//
// It may import activities/filelock.
package program
