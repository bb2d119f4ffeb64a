package executor

import (
	"context"
	"io"
	"net"
)

// Inside is a running attempt seen from within: its processes, its user, its files and its network. Its methods are safe for
// concurrent use. A *Refusal explains to the user why a request cannot be met.
type Inside interface {
	// Exec runs a program beside the attempt's own and returns its exit status once all its output has been delivered. When ctx
	// or the attempt ends, the program is sent SIGHUP, then SIGKILL. An error together with CodeUnknown explains why the exit
	// status of a started program is unknown.
	Exec(ctx context.Context, c Command) (ExitStatus, error)
	// Dial connects to a TCP port of the attempt, trying its loopback interface first. The connection supports half-close.
	Dial(ctx context.Context, port int) (net.Conn, error)
	// Listen accepts TCP connections on a port of the attempt's loopback interface. Port 0 picks any free port.
	Listen(ctx context.Context, port int) (net.Listener, error)
	// ServeFiles serves the files of the attempt over SFTP, version 3, with the rights of one of its users, until conn or ctx
	// ends.
	ServeFiles(ctx context.Context, user string, conn io.ReadWriter) error
	// ReadTar writes the file or directory at path to an archive. It leaves out sockets and devices. Names in the archive begin
	// with the last element of the path.
	ReadTar(ctx context.Context, user, path string, to io.Writer) error
	// WriteTar unpacks an archive into a directory. With rename, the archive's single top-level entry is created at path itself.
	// WriteTar refuses entries that would lie outside, by their name or through a link.
	WriteTar(ctx context.Context, user, path string, rename bool, from io.Reader) error
}

// Command is a program that runs inside an attempt.
type Command struct {
	// Args are the program and its arguments. If Args is empty, the user's login shell runs, and executes Line if that is set.
	Args []string
	Line string
	// Env is added to the environment of the attempt's program.
	Env map[string]string
	// Dir is the working directory, or "" for that of the attempt's program.
	Dir string
	// User is the user to run as, where the attempt has users, or "" for the user of the attempt's program.
	User string
	// Stdin is the input of the program, or nil for none. Exec does not wait for a Read that is still in progress when the
	// program has ended.
	Stdin io.Reader
	// Stdout and Stderr receive the output; nil discards it. With a Terminal, all output goes to Stdout.
	Stdout, Stderr io.Writer
	// Terminal is the terminal of the program, or nil for none.
	Terminal *Terminal
	// Signals carries the signals to send to the program, such as "INT", or is nil.
	Signals <-chan string
}

// Terminal is the terminal of a Command.
type Terminal struct {
	// Type is the terminal type, such as "xterm-256color".
	Type string
	Size WindowSize
	// Resizes carries later sizes, or is nil if the size never changes.
	Resizes <-chan WindowSize
}

// WindowSize is the size of a terminal in characters.
type WindowSize struct{ Columns, Rows uint16 }

// CodeUnknown is the exit code of a program whose exit status is unknown; ssh uses the same.
const CodeUnknown = 255

// ExitStatus describes how a Command ended.
type ExitStatus struct {
	// Code is the exit code, or 128 plus the number of the signal that ended it.
	Code int
	// Signal names the signal that ended the program, such as "TERM", or is "" if there was none or it is unknown.
	Signal string
}
