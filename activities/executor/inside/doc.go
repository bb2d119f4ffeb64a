// Package inside reaches into a process of this machine: its network, and its files as its user sees them. The executors use it to
// let people into attempts that run, see executor.Inside.
//
// # Network
//
// Dial and Listen make their sockets on an OS thread that has entered the network namespace of the process. The thread ends
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
// A link of the process's files resolves inside its root, because the helper has no other one. The helper executes no program,
// looks up no user by the C library (which would load code from the root), and opens no device. It is killed when the process has
// ended, so that it never serves the files of another process with the same number.
//
// A process that has the root and the user of the worker itself is entered without any privilege.
//
// On systems other than Linux every call is refused. The package may import activities/executor, activities/executor/shell/procfs,
// activities/executor/tartree, github.com/pkg/sftp, golang.org/x/sys and the standard library.
package inside
