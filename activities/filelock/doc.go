// Package filelock gives one process of a machine exclusive use of something, such as a database,
// the name of a node or a folder, by locking a file. The kernel releases the lock when the process
// dies, for whatever reason.
//
// Packages such as gofrs/flock lack what this one is for: files that are removed while others wait for them, locks that a
// child process does not prolong, and a note of the holder, by which the next one can tell whose death the lock proves.
//
// It imports nothing of Switchyard, and everything may import it.
package filelock
