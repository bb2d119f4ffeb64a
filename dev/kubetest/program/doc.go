// Package program finds and builds the program of dev/kubernetes, a real Kubernetes. The build takes minutes, so it is
// kept in the user's cache folder under a hash of what it is made of, where all checkouts and test processes find it.
//
// It may import activities/filelock.
package program
