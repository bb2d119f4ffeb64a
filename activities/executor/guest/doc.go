// Package guest reaches into a machine, such as a virtual machine, over SSH alone. It implements executor.Inside for
// attempts that share nothing else with their node: no processes, no files and no network.
//
// # Connections
//
// A Guest logs in when it is first used, and again after a connection has broken. Its programs share one connection,
// and its ports another. An sshd limits the sessions of a connection (MaxSessions of OpenSSH, 10 by default), and
// dropbear mixes up the sessions of programs that end at the same time. Therefore a Guest opens more connections when
// it needs them and closes them when they are unused. It sends regular keep-alives on each connection. A connection
// without an answer is closed, which ends every call that waits for it.
//
// # Programs
//
//	node                                  sshd ──> login shell of the user
//	  exec /bin/sh -c '...'   ──────────>   /bin/sh
//	  <────────── mark with the number of its process
//	  one line: cd, export, exec ───────>   reads it from standard input
//	  standard input ───────────────────>   the program, in place of /bin/sh
//
// Arguments and variables travel on standard input for three reasons: other users of the machine could read them from a
// command line, an sshd accepts hardly any variables, and login shells differ in how they quote. Output of the login
// shell's start-up files before the mark is discarded.
//
// A signal is sent by a request to the sshd. OpenSSH refuses that request for root, and old versions refuse it for
// every user. In that case a second session runs kill.
//
// # Users
//
// Everything runs as the user who logs in. Any other user is refused, even if the login user is root: programs such as
// su differ too much between systems in how they handle signals, terminals and the environment.
//
// # Files
//
// The sftp-server of the machine serves SFTP. Archives are packed and unpacked on the node, also over SFTP: a tar
// program in the machine might follow links that lead outside. SFTP does not show which names belong to the same file,
// so every hard link is packed as a separate file.
//
// The package may import activities/executor, activities/executor/tartree, github.com/pkg/sftp, golang.org/x/crypto/ssh and the
// standard library.
package guest
