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

// OpenFunc opens a stream to an attempt. The header says what the stream is for; OpenFunc adds the identity of the attempt. The
// returned stream is positioned after the reply. ctx applies only to opening the stream.
type OpenFunc func(ctx context.Context, h *v1.SessionHeader) (wire.Conn, *v1.SessionReply, error)

// inside is an executor.Inside for an attempt that runs on another node.
type inside struct{ open OpenFunc }

var _ executor.Inside = inside{}

// New returns the executor.Inside of the attempt that open opens streams to. It returns errors of open, such as a
// *wire.RefusedError, unchanged. A refusal by the node is an *executor.Refusal. A *LostError means that the outcome of the
// session is unknown.
func New(open func(ctx context.Context, h *v1.SessionHeader) (wire.Conn, *v1.SessionReply, error)) executor.Inside {
	return inside{open}
}

// LostError means that a session ended without reporting an outcome: the link was lost, or the node or a gateway has gone away.
type LostError struct {
	// What names the operation that was in progress, such as "the program".
	What string
	// Node is the name of the node, or "" if unknown.
	Node string
	// Err is the error that showed the loss.
	Err error
}

// Error returns the text of the error, which notes that the operation may still be in progress.
func (e *LostError) Error() string {
	where := ""
	if e.Node != "" {
		where = " on node " + e.Node
	}
	return fmt.Sprintf("the link to the session was lost (%v); %s may still run%s", e.Err, e.What, where)
}

// Unwrap returns Err.
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

// portHeader returns the stream header for a port, or a refusal if the port is below least or above 65535.
func portHeader(kind string, port, least int) (*v1.SessionHeader, error) {
	if port < least || port > 65535 {
		return nil, &executor.Refusal{Text: fmt.Sprintf("%d is not a port; ports are from %d to 65535", port, least)}
	}
	return &v1.SessionHeader{Kind: kind, Port: uint32(port)}, nil
}

// ServeFiles copies between conn and the node, which runs the SFTP server.
func (i inside) ServeFiles(ctx context.Context, user string, conn io.ReadWriter) error {
	stream, reply, err := i.open(ctx, &v1.SessionHeader{Kind: wire.KindSFTP, User: user})
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	stop := context.AfterFunc(ctx, func() { wire.Abort(stream, "") })
	defer stop()
	go func() { // ends with conn or the stream
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

// ended converts the error with which the stream of an operation has ended.
func ended(ctx context.Context, err error, what string, reply *v1.SessionReply) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, wire.ErrLost) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		if errors.Is(err, io.EOF) {
			err = errors.New("it ended without an outcome")
		}
		return &LostError{What: what, Node: reply.GetNode(), Err: err}
	}
	return err
}
