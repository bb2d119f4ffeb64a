// Package guest reaches into a machine by SSH alone, such as a virtual machine. It is the executor.Inside of attempts that have
// nothing else in common with their node: no processes, no files and no network.
//
// # Connections
//
// A Guest logs in when it is first used, and again when a connection has broken. Its programs share one connection, and its ports
// another. The sshd limits the sessions of a connection (MaxSessions of OpenSSH, 10 by default), and dropbear mixes up those of
// programs that end at once, so that a Guest opens more connections and closes them when they are unused. It asks each one for a
// sign of life regularly. One that does not answer is closed, which ends what waits for it.
//
// # Programs
//
//	node                                  sshd ──> login shell of the user
//	  exec /bin/sh -c '...'   ──────────>   /bin/sh
//	  <────────── mark with the number of its process
//	  one line: cd, export, exec ───────>   reads it from standard input
//	  standard input ───────────────────>   the program, in place of /bin/sh
//
// Arguments and variables travel on standard input, since others in the machine could read them from a command line, an sshd
// accepts hardly any variables otherwise, and login shells differ in how they quote. What files of the login shell print before
// the mark is thrown away.
//
// A signal is sent by a request to the sshd. OpenSSH refuses that for root, and older ones do for everyone. Then a second session
// runs kill.
//
// # Users
//
// All is done as the user who logs in. Another one is refused, even where that user is root: programs such as su differ too much
// between systems in what becomes of signals, terminals and the environment.
//
// # Files
//
// SFTP is served by the sftp-server of the machine. Archives are packed and unpacked on the node, over SFTP as well: a tar program
// of the machine might not refuse links that lead outside. SFTP does not tell which names are of one file, so that each is packed as
// a file of its own.
//
// The package may import activities/executor, activities/executor/tartree, github.com/pkg/sftp, golang.org/x/crypto/ssh and the
// standard library.
package guest
