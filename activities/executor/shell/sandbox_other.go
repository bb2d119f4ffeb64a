//go:build !linux

package shell

import (
	"context"
	"errors"
	"os"
)

var errNoSandbox = errors.New("sandboxes need Linux")

// CanSandbox returns an error on systems other than Linux.
func (e *Executor) CanSandbox() error { return errNoSandbox }

type sandboxing struct{}

type users struct{}

func newUsers(Users) *users { return nil }
func (*users) close() error { return nil }

type box struct{}

func (e *Executor) newBox() (*box, error) { return nil, errNoSandbox }
func (*box) release() error               { return nil }

func (r *running) startBoxed(context.Context, program, []*os.File) (*os.Process, error) {
	return nil, errNoSandbox
}
