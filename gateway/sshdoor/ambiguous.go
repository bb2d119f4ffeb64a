package sshdoor

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"

	"switchyard/activities/executor"
)

// ambiguous refuses every operation of a client that must log in to a specific task.
type ambiguous struct{ grant *grant }

var _ executor.Inside = ambiguous{}

func (a ambiguous) refuse() error {
	var users []string
	for _, task := range a.grant.choices {
		users = append(users, task+"."+a.grant.run.ID)
	}
	return &executor.Refusal{Text: fmt.Sprintf("%d tasks of run %s accept this key; log in as one of %s", len(users), a.grant.run.ID, strings.Join(users, ", "))}
}

// Exec returns the refusal.
func (a ambiguous) Exec(context.Context, executor.Command) (executor.ExitStatus, error) {
	return executor.ExitStatus{}, a.refuse()
}

// Dial returns the refusal.
func (a ambiguous) Dial(context.Context, int) (net.Conn, error) { return nil, a.refuse() }

// Listen returns the refusal.
func (a ambiguous) Listen(context.Context, int) (net.Listener, error) { return nil, a.refuse() }

// ServeFiles returns the refusal.
func (a ambiguous) ServeFiles(context.Context, string, io.ReadWriter) error { return a.refuse() }

// ReadTar returns the refusal.
func (a ambiguous) ReadTar(context.Context, string, string, io.Writer) error { return a.refuse() }

// WriteTar returns the refusal.
func (a ambiguous) WriteTar(context.Context, string, string, bool, io.Reader) error {
	return a.refuse()
}
