// Package sshserver serves an authenticated SSH connection inside one attempt: shells and programs with and without a
// terminal, SFTP, and forwarding of the attempt's ports to the client (-L) and the reverse (-R). The caller decides who may
// log in.
//
//	connection ──┬── session ──── env, pty-req ──▶ shell, exec or subsystem ──▶ exit-status or exit-signal ──▶ closed
//	             ├── direct-tcpip ──────▶ a port of the attempt
//	             └── tcpip-forward ─────▶ a listener in the attempt ──▶ forwarded-tcpip, one for each connection
//
// Agents and X11 are not forwarded. Clients reach only ports of the attempt itself, so that the attempt is not a way into the
// network of its node.
//
// Of this module it may import activities/executor.
package sshserver
