package qemu

import (
	"context"
	"io"
	"net"

	"switchyard/activities/executor"
	"switchyard/activities/executor/guest"
)

// errPaused is the refusal to enter a suspended machine.
var errPaused = &executor.Refusal{Text: "the machine is paused; resume it first"}

// Enter returns access to the machine of an attempt over SSH. Sessions and connections end with the machine, and when
// the attempt is left to a later worker.
func (e *Executor) Enter(_ context.Context, id string) (executor.Inside, error) {
	m := e.find(id)
	if m == nil || m.isEnding() {
		return nil, executor.ErrNotRunning
	}
	return &entered{m}, nil
}

// newGuest returns access to the inside of a machine. It connects on first use.
func (m *machine) newGuest() *guest.Guest {
	return guest.New(guest.Options{
		Connect: m.connect, User: m.record.User, Env: m.record.Env, Dir: m.record.Dir, Life: m.life, IsPaused: m.isPaused,
	})
}

// entered is the inside of a machine that may become suspended.
type entered struct{ m *machine }

// inside returns the inside of the machine, or an error if the machine has ended or is suspended.
func (i *entered) inside() (executor.Inside, error) {
	switch {
	case i.m.isEnding():
		return nil, executor.ErrNotRunning
	case i.m.isPaused():
		return nil, errPaused
	}
	return i.m.guest, nil
}

// Exec runs a program in the machine.
func (i *entered) Exec(ctx context.Context, c executor.Command) (executor.ExitStatus, error) {
	in, err := i.inside()
	if err != nil {
		return executor.ExitStatus{}, err
	}
	return in.Exec(ctx, c)
}

// Dial connects to a port of the machine.
func (i *entered) Dial(ctx context.Context, port int) (net.Conn, error) {
	in, err := i.inside()
	if err != nil {
		return nil, err
	}
	return in.Dial(ctx, port)
}

// Listen accepts connections on a port of the machine.
func (i *entered) Listen(ctx context.Context, port int) (net.Listener, error) {
	in, err := i.inside()
	if err != nil {
		return nil, err
	}
	return in.Listen(ctx, port)
}

// ServeFiles serves the files of the machine.
func (i *entered) ServeFiles(ctx context.Context, user string, conn io.ReadWriter) error {
	in, err := i.inside()
	if err != nil {
		return err
	}
	return in.ServeFiles(ctx, user, conn)
}

// ReadTar writes files of the machine to an archive.
func (i *entered) ReadTar(ctx context.Context, user, path string, to io.Writer) error {
	in, err := i.inside()
	if err != nil {
		return err
	}
	return in.ReadTar(ctx, user, path, to)
}

// WriteTar unpacks an archive in the machine.
func (i *entered) WriteTar(ctx context.Context, user, path string, rename bool, from io.Reader) error {
	in, err := i.inside()
	if err != nil {
		return err
	}
	return in.WriteTar(ctx, user, path, rename, from)
}
