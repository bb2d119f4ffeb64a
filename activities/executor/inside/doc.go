// Package inside reaches into a process of this machine: its network, and its files as its user sees them. The executors use it
// to let users into running attempts, see executor.Inside.
//
// # Network
//
// Dial and Listen create their sockets on an OS thread that has entered the network namespace of the process. The thread ends
// afterwards and serves nothing else.
//
// # Files
//
// ServeFiles, ReadTar and WriteTar start this program again as a helper, see ServeIfAsked:
//
//	worker                                helper
//	  pidfd of the process
//	  opens /proc/PID/root  ── passed ──> chroot ──> user, groups ──> Dir ──> serves on stdin and stdout
//	  no new privileges,
//	  few capabilities  ────── forks ──>
//
// Links among the process's files resolve inside its root, because the helper has no other root. The helper executes no program,
// opens no device, and does not look up users through the C library, which would load code from the root. It is killed when the
// process ends, so it never serves the files of a later process with the same PID.
//
// Entering a process with the same root and user as the worker takes no privilege.
//
// On systems other than Linux every call is refused. The package may import activities/executor, activities/executor/shell/procfs,
// activities/executor/tartree, github.com/pkg/sftp, golang.org/x/sys and the standard library.
package inside
