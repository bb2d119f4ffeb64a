// Package statedir names the folder in which the processes of a user on this machine hold locks and keep what a later process
// recovers. The folder does not depend on TMPDIR, which differs between services, shells and restarts.
//
// It imports nothing of Switchyard, and everything may import it.
package statedir
