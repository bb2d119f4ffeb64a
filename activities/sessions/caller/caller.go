package caller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"switchyard/activities/executor"
	"switchyard/activities/sessions/wire"
	v1 "switchyard/proto/switchyard/v1"
)

// OpenFunc opens a stream to an attempt. The header says what it is for; OpenFunc adds which attempt it is. It returns past the
// reply. ctx bounds opening alone.
type OpenFunc func(ctx context.Context, h *v1.SessionHeader) (wire.Conn, *v1.SessionReply, error)

// inside is the inside of an attempt that runs elsewhere.
type inside struct{ open OpenFunc }

var _ executor.Inside = inside{}

// New returns the inside of the attempt that open opens streams to. The errors of open, such as a *wire.RefusedError, are
// returned as they are; an *executor.Refusal has the words of the node; *LostError is a session whose end is not known.
func New(open func(ctx context.Context, h *v1.SessionHeader) (wire.Conn, *v1.SessionReply, error)) executor.Inside {
	return inside{open}
}

// LostError is a session that has ended without a word on how: the link was lost, or the node or a gateway has gone.
type LostError struct {
	// What was under way, such as "the program".
	What string
	// Node is where, if it is known.
	Node string
	// Err is what has been seen of the loss.
	Err error
}

// Error says what was lost, and that it may continue.
func (e *LostError) Error() string {
	where := ""
	if e.Node != "" {
		where = " on node " + e.Node
	}
	return fmt.Sprintf("the link to the session was lost (%v); %s may still run%s", e.Err, e.What, where)
}

// Unwrap returns what has been seen of the loss.
func (e *LostError) Unwrap() error { return e.Err }

// Dial connects to a port of the attempt.
func (i inside) Dial(ctx context.Context, port int) (net.Conn, error) {
	h, err := portHeader(wire.KindConnect, port, 1)
	if err != nil {
		return nil, err
	}
	conn, _, err := i.open(ctx, h)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// portHeader returns the header of a stream for a port.
func portHeader(kind string, port, least int) (*v1.SessionHeader, error) {
	if port < least || port > 65535 {
		return nil, &executor.Refusal{Text: fmt.Sprintf("%d is no port; ports are from %d to 65535", port, least)}
	}
	return &v1.SessionHeader{Kind: kind, Port: uint32(port)}, nil
}

// ServeFiles copies between conn and the node, which serves the files.
func (i inside) ServeFiles(ctx context.Context, user string, conn io.ReadWriter) error {
	stream, reply, err := i.open(ctx, &v1.SessionHeader{Kind: wire.KindSFTP, User: user})
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	stop := context.AfterFunc(ctx, func() { wire.Abort(stream, "") })
	defer stop()
	go func() { // ends when conn does, or the stream
		_, err := io.Copy(stream, conn)
		if err == nil {
			err = stream.CloseWrite()
		}
		if err != nil {
			wire.Abort(stream, "")
		}
	}()
	_, err = io.Copy(conn, stream)
	return ended(ctx, err, "a transfer of files", reply)
}

// ended returns the error of a call whose stream has ended with err.
func ended(ctx context.Context, err error, what string, reply *v1.SessionReply) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, wire.ErrLost) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		if errors.Is(err, io.EOF) {
			err = errors.New("it ended without a word")
		}
		return &LostError{What: what, Node: reply.GetNode(), Err: err}
	}
	return err
}
