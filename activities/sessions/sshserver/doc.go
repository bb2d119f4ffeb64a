// Package sshserver serves an SSH connection that has logged in on the inside of one attempt: shells and programs with and
// without a terminal, SFTP, ports of the attempt on the client's machine (-L) and the reverse (-R). Who may log in is a matter
// of the caller.
//
//	connection ──┬── session ──── env, pty-req ──▶ shell, exec or subsystem ──▶ exit-status or exit-signal ──▶ closed
//	             ├── direct-tcpip ──────▶ a port of the attempt
//	             └── tcpip-forward ─────▶ a listener in the attempt ──▶ forwarded-tcpip, one for each connection
//
// Agents and X11 are not forwarded. Only ports of the attempt itself are reached: the attempt is no way into the network of
// its node.
//
// Of this module it may import activities/executor.
package sshserver
