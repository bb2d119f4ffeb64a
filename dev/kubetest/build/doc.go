// Command build builds the Kubernetes of dev/kubernetes for tests, and prints its path. The first build takes 5 to 9
// minutes of two processors; later ones take seconds.
package main
