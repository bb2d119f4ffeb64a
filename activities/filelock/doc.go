// Package filelock gives one process of a machine exclusive use of something, such as a database,
// the name of a node or a folder, by locking a file. The kernel releases the lock when the process
// dies, for whatever reason.
//
// It imports nothing of Switchyard, and everything may import it.
package filelock
