package sshdoor

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"

	"switchyard/activities/executor"
)

// ambiguous is the inside for a client that has to name a task: it refuses everything.
type ambiguous struct{ grant *grant }

var _ executor.Inside = ambiguous{}

func (a ambiguous) refuse() error {
	var users []string
	for _, task := range a.grant.choices {
		users = append(users, task+"."+a.grant.run.ID)
	}
	return &executor.Refusal{Text: fmt.Sprintf("%d tasks of run %s take this key; log in as one of %s", len(users), a.grant.run.ID, strings.Join(users, ", "))}
}

// Exec refuses.
func (a ambiguous) Exec(context.Context, executor.Command) (executor.ExitStatus, error) {
	return executor.ExitStatus{}, a.refuse()
}

// Dial refuses.
func (a ambiguous) Dial(context.Context, int) (net.Conn, error) { return nil, a.refuse() }

// Listen refuses.
func (a ambiguous) Listen(context.Context, int) (net.Listener, error) { return nil, a.refuse() }

// ServeFiles refuses.
func (a ambiguous) ServeFiles(context.Context, string, io.ReadWriter) error { return a.refuse() }

// ReadTar refuses.
func (a ambiguous) ReadTar(context.Context, string, string, io.Writer) error { return a.refuse() }

// WriteTar refuses.
func (a ambiguous) WriteTar(context.Context, string, string, bool, io.Reader) error {
	return a.refuse()
}
