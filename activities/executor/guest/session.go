package guest

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/crypto/ssh"

	"switchyard/activities/executor/tartree"
)

// errDenied is the negative answer of an sshd to a request.
var errDenied = errors.New("the sshd refuses")

// request is a request on a session.
type request struct {
	name    string
	payload []byte
	// refusal is the text of the Refusal after a negative answer.
	refusal string
}

// execRequest returns the request to run a command line in the login shell.
func execRequest(line string) request {
	return request{"exec", ssh.Marshal(struct{ Command string }{line}), "the sshd of the machine does not run commands"}
}

// startSession opens a session and sends its requests. It retries if a session ends before it has begun.
func (g *Guest) startSession(ctx context.Context, asked ...request) (*channel, error) {
	for broken := 1; ; broken++ {
		c, err := g.sessions.open(ctx, "session", nil)
		if e, ok := errors.AsType[*ssh.OpenChannelError](err); ok {
			return nil, refuse("the sshd of the machine refuses to open a session: %s", tartree.OneLine(e.Message))
		}
		if err != nil {
			return nil, err
		}
		for _, one := range asked {
			if err = c.ask(ctx, one.name, one.payload); err != nil {
				c.end()
				if errors.Is(err, errDenied) {
					return nil, refuse("%s", one.refusal)
				}
				break
			}
		}
		switch {
		case err == nil:
			return c, nil
		case !errors.Is(err, io.EOF) || broken == maxBroken:
			return nil, fmt.Errorf("start a session in the machine: %w", err)
		}
		go ssh.DiscardRequests(c.requests)
	}
}

// ask sends a request and waits for the answer. It returns errDenied if the answer is negative.
func (c *channel) ask(ctx context.Context, name string, payload []byte) error {
	return await(ctx, func() error {
		ok, err := c.SendRequest(name, true, payload)
		if err == nil && !ok {
			err = errDenied
		}
		return err
	}, nil)
}

// end closes the channel in the background, because the machine may not read.
func (c *channel) end() {
	go func() {
		_ = c.Close()
		c.release()
	}()
}
