package qmp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

const (
	// maxLine bounds a message, in bytes.
	maxLine = 1 << 20
	// maxEvents bounds the events that wait to be read.
	maxEvents = 1024
	// patience bounds the greeting, and commands whose context has no deadline.
	patience = 10 * time.Second
)

// ErrClosed reports that the connection has ended.
var ErrClosed = errors.New("the connection to QEMU has ended")

// Client is a connection to a machine. QEMU serves one connection at a time on a socket; a second one waits for its
// greeting. Its methods are safe for concurrent use.
type Client struct {
	conn   net.Conn
	events chan Event

	writing sync.Mutex

	mu      sync.Mutex
	pending map[uint64]chan<- message
	next    uint64
	// err is why the connection ended, or nil.
	err error
}

// Dial connects to the socket of a machine and negotiates capabilities. It takes at most 10 s, less if ctx ends
// earlier.
func Dial(ctx context.Context, path string) (*Client, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	c, err := newClient(ctx, conn)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("negotiate with QEMU at %s: %w", path, err), conn.Close())
	}
	return c, nil
}

// newClient negotiates over a connection. After an error the caller closes the connection.
func newClient(ctx context.Context, conn net.Conn) (*Client, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	lines := bufio.NewScanner(conn)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	greeting, err := read(lines)
	if !stop() {
		return nil, fmt.Errorf("no greeting: %w", context.Cause(ctx))
	}
	if err != nil {
		return nil, err
	}
	if greeting.QMP == nil {
		return nil, errors.New("the first message is not a greeting")
	}
	c := &Client{conn: conn, events: make(chan Event, maxEvents), pending: map[uint64]chan<- message{}}
	go c.receive(lines)
	return c, c.Execute(ctx, "qmp_capabilities", nil, nil)
}

// read reads a message.
func read(lines *bufio.Scanner) (message, error) {
	if !lines.Scan() {
		if err := lines.Err(); err != nil {
			return message{}, err
		}
		return message{}, ErrClosed
	}
	var m message
	if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
		return message{}, fmt.Errorf("malformed message from QEMU: %w", err)
	}
	return m, nil
}

// receive reads messages until the connection ends.
func (c *Client) receive(lines *bufio.Scanner) {
	for {
		m, err := read(lines)
		if err == nil {
			err = c.deliver(m)
		}
		if err != nil {
			c.failPending(err)
			return
		}
	}
}

// deliver passes on an answer or an event.
func (c *Client) deliver(m message) error {
	if m.Event != "" {
		select {
		case c.events <- Event{Name: m.Event, Data: m.Data}:
			return nil
		default:
			return errors.New("too many unread events from QEMU")
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer := c.pending[m.ID]; answer != nil {
		delete(c.pending, m.ID)
		answer <- m // the channel is buffered
	}
	return nil
}

// failPending records why the connection has ended and fails the pending commands.
func (c *Client) failPending(err error) {
	c.mu.Lock()
	c.err = err
	for id, answer := range c.pending {
		delete(c.pending, id)
		close(answer)
	}
	c.mu.Unlock()
	_ = c.conn.Close()
	close(c.events)
}

// Events returns the events of the machine since the connection was made. The channel is closed when the connection has
// ended. The connection also ends if a thousand events wait to be read.
func (c *Client) Events() <-chan Event { return c.events }

// Close ends the connection. The machine continues.
func (c *Client) Close() error {
	err := c.conn.Close()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Execute runs a command on the machine. arguments may be nil. The answer is decoded into result unless result is nil.
// Without a deadline in ctx, Execute waits for at most 10 s. An *Error is the machine's own error.
func (c *Client) Execute(ctx context.Context, command string, arguments, result any) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, patience, fmt.Errorf("QEMU does not answer within %v", patience))
		defer cancel()
	}
	id, answered, err := c.expect()
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	defer c.dropPending(id)
	if err := c.send(ctx, request{Execute: command, Arguments: arguments, ID: id}); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	select {
	case m, ok := <-answered:
		switch {
		case !ok:
			return fmt.Errorf("%s: %w", command, c.reason())
		case m.Error != nil:
			m.Error.Command = command
			return m.Error
		case result != nil:
			return json.Unmarshal(m.Return, result)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", command, context.Cause(ctx))
	}
}

// expect registers a new command and returns its id and the channel of its answer, which is closed if the connection
// ends.
func (c *Client) expect() (uint64, <-chan message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, nil, c.err
	}
	c.next++
	answer := make(chan message, 1)
	c.pending[c.next] = answer
	return c.next, answer, nil
}

// dropPending drops a pending command, so that a late answer is ignored.
func (c *Client) dropPending(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
}

// reason returns why the connection ended.
func (c *Client) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// send writes a command.
func (c *Client) send(ctx context.Context, r request) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	deadline, _ := ctx.Deadline()
	if err := c.conn.SetWriteDeadline(deadline); err != nil {
		return err
	}
	if _, err := c.conn.Write(append(line, '\n')); err != nil {
		_ = c.conn.Close() // a part of the line may have been written
		return err
	}
	return nil
}
