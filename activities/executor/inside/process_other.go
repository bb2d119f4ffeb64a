//go:build !linux

package inside

import (
	"context"
	"io"
	"net"
)

var errNotLinux = refuse("attempts can only be entered on Linux nodes")

// ServeIfAsked does nothing on systems other than Linux.
func ServeIfAsked() {}

// User returns a Refusal on systems other than Linux.
func (p Process) User(string) (User, error) { return User{}, errNotLinux }

// Dial returns a Refusal on systems other than Linux.
func (p Process) Dial(context.Context, int) (net.Conn, error) { return nil, errNotLinux }

// Listen returns a Refusal on systems other than Linux.
func (p Process) Listen(context.Context, int) (net.Listener, error) { return nil, errNotLinux }

// ServeFiles returns a Refusal on systems other than Linux.
func (p Process) ServeFiles(context.Context, io.ReadWriter) error { return errNotLinux }

// ReadTar returns a Refusal on systems other than Linux.
func (p Process) ReadTar(context.Context, string, io.Writer) error { return errNotLinux }

// WriteTar returns a Refusal on systems other than Linux.
func (p Process) WriteTar(context.Context, string, bool, io.Reader) error { return errNotLinux }
