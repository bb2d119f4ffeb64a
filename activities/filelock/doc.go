// Package filelock keeps other processes of a machine away from something by
// the lock on a file: a database, the name of a node, a folder. The kernel
// releases a lock when its process dies, however it dies.
//
// It imports nothing of Switchyard, and everything may import it.
package filelock
