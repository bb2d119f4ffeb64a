package executor

import (
	"context"
	"io"
	"net"
)

// Enterer is an Executor whose attempts can be entered while they run.
type Enterer interface {
	Executor

	// Enter returns the inside of the attempt that runs under an id. ErrNotRunning says that none does. It needs no Close: what
	// was begun in it ends with the contexts of its calls, and at the latest with the attempt.
	Enter(ctx context.Context, id string) (Inside, error)
}

// Inside is an attempt that runs, as those see it who enter it: with its processes, its user, its files and its network. Its
// methods may be called from several goroutines at once. A *Refusal says that what is asked for cannot be had, for people.
type Inside interface {
	// Exec runs a program beside that of the attempt, and returns how it has ended when nothing more of its output is to come.
	// When ctx ends, or the attempt does, the program is sent SIGHUP, then SIGKILL. An error with CodeUnknown says why the end of a
	// program that has started is not known.
	Exec(ctx context.Context, c Command) (ExitStatus, error)
	// Dial connects to a TCP port of the attempt, on its loopback interface first. The connection half-closes.
	Dial(ctx context.Context, port int) (net.Conn, error)
	// Listen accepts TCP connections on a port of the attempt's loopback interface; 0 is any that is free.
	Listen(ctx context.Context, port int) (net.Listener, error)
	// ServeFiles serves the files of the attempt, as a user of it, by SFTP, version 3, until conn or ctx ends.
	ServeFiles(ctx context.Context, user string, conn io.ReadWriter) error
	// ReadTar writes what lies at a path, file or directory, to an archive. Sockets and devices are left out. Names in the archive
	// begin with the last element of the path.
	ReadTar(ctx context.Context, user, path string, to io.Writer) error
	// WriteTar unpacks an archive in a directory; with rename its one top element is made under the path itself. What would lie
	// outside, by its name or through a link, is refused.
	WriteTar(ctx context.Context, user, path string, rename bool, from io.Reader) error
}

// Command is a program that runs inside an attempt.
type Command struct {
	// Args are the program and its arguments. Empty: the shell of the user, a login shell; with Line it runs that line.
	Args []string
	Line string
	// Env is added to the environment of the attempt's program.
	Env map[string]string
	// Dir is where it starts; empty: where the attempt's program did.
	Dir string
	// User is who it runs as, where the attempt has users; empty: as the attempt's program.
	User string
	// Stdin is what it reads; nil: nothing. Exec does not wait for a Read that is under way when the program has ended.
	Stdin io.Reader
	// Stdout and Stderr take what it prints; nil: that is thrown away. With Terminal all goes to Stdout.
	Stdout, Stderr io.Writer
	// Terminal is the terminal that it has; nil: none.
	Terminal *Terminal
	// Signals are sent to it, such as "INT"; nil: none are.
	Signals <-chan string
}

// Terminal is the terminal of a Command.
type Terminal struct {
	// Type is such as "xterm-256color".
	Type string
	Size WindowSize
	// Resizes are later sizes; nil: none follow.
	Resizes <-chan WindowSize
}

// WindowSize is the size of a terminal in characters.
type WindowSize struct{ Columns, Rows uint16 }

// CodeUnknown is the exit code of a program whose end is not known, as that of ssh.
const CodeUnknown = 255

// ExitStatus is how a Command has ended.
type ExitStatus struct {
	// Code is the exit code, or 128 plus the number of the signal that ended it.
	Code int
	// Signal is such as "TERM"; empty: none has ended it, or this is not known.
	Signal string
}
