package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
)

// EndedError reports that a session ended in the middle of a turn.
type EndedError struct {
	ID string
	// Why is the reason that the session gave, or empty.
	Why string
}

// Error returns the message.
func (e *EndedError) Error() string {
	if e.Why != "" {
		return fmt.Sprintf("session %s has ended: %s", e.ID, e.Why)
	}
	return fmt.Sprintf("session %s ended in the middle of the turn: its attaching process is gone", e.ID)
}

// NotFoundError reports that the node has no live session with an id.
type NotFoundError struct {
	ID string
	// Live lists the ids of the live sessions.
	Live []string
}

// Error returns the message.
func (e *NotFoundError) Error() string {
	if len(e.Live) == 0 {
		return fmt.Sprintf("session %s does not exist; this node has no sessions (start one with `switchyard agent attach`)", e.ID)
	}
	return fmt.Sprintf("session %s does not exist on this node (available: %s)", e.ID, strings.Join(e.Live, ", "))
}

// Conn is a connection to a session, for one message.
type Conn struct {
	id   string
	conn net.Conn
}

// Dial connects to a session. The error is a *NotFoundError if the session is not alive.
func Dial(ctx context.Context, dir, id string) (*Conn, error) {
	if CheckID(id) == nil && checkPrivate(dir) == nil {
		conn, err := dial(ctx, dir, id)
		if err == nil {
			return &Conn{id: id, conn: conn}, nil
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, &NotFoundError{ID: id, Live: List(ctx, dir)}
}

// Close closes the connection and gives up a turn that is still open.
func (c *Conn) Close() error { return c.conn.Close() }

// Observer receives the progress of a message. One goroutine calls its functions.
type Observer struct {
	// Queued is called with the number of turns that are ahead, if there are any.
	Queued func(turns int)
	// Line is called with each line of the turn, truncated by its last cut bytes.
	Line func(line []byte, cut int64)
}

// Ask sends a message. With await it returns when the turn has ended, otherwise when the program has accepted the
// message. When ctx ends, Ask gives up the turn and returns the error of ctx. An *EndedError reports that the session
// ended without an answer.
func (c *Conn) Ask(ctx context.Context, prompt string, await bool, o Observer) error {
	defer context.AfterFunc(ctx, func() { c.conn.Close() })()
	failed := func(err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	if err := json.NewEncoder(c.conn).Encode(request{Prompt: prompt, Await: await}); err != nil {
		return failed(&EndedError{ID: c.id})
	}
	frames := json.NewDecoder(c.conn)
	for {
		var f frame
		if err := frames.Decode(&f); err != nil {
			if _, malformed := errors.AsType[*json.SyntaxError](err); malformed && err != io.ErrUnexpectedEOF {
				return failed(fmt.Errorf("session %s: malformed answer: %w", c.id, err))
			}
			return failed(&EndedError{ID: c.id})
		}
		switch {
		case f.Error != "":
			return failed(&EndedError{ID: c.id, Why: f.Error})
		case f.Line != nil:
			o.Line([]byte(*f.Line), f.Cut)
		case f.Queued > 0:
			o.Queued(f.Queued)
		case f.Done, f.Accepted && !await:
			return nil
		}
	}
}
