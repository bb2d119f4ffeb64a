package sessions

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"unicode"

	"switchyard/activities/executor"
	"switchyard/activities/sessions/wire"
	v1 "switchyard/proto/switchyard/v1"
)

// Attempts gives access to the attempts that run on a node.
type Attempts interface {
	// Enter returns the inside of the attempt that a header names. The caller calls the returned function when the session ends.
	// If no such attempt runs on the node, the error has a method NotFound that returns true.
	Enter(ctx context.Context, h *v1.SessionHeader) (executor.Inside, func(), error)
}

// Serve replies to the header of a stream, carries out what the header requests, and closes the stream. It returns soon after the
// client leaves, ctx ends or the attempt ends.
func Serve(ctx context.Context, conn wire.Conn, h *v1.SessionHeader, attempts Attempts) {
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &session{conn: conn, header: h, cancel: cancel}
	if err := wire.CheckHeader(h); err != nil {
		s.refuse(err)
		return
	}
	in, leave, err := attempts.Enter(ctx, h)
	if err != nil {
		s.refuse(err)
		return
	}
	defer leave()
	s.in = in
	stop := context.AfterFunc(ctx, func() { wire.Abort(conn, "") })
	defer stop()
	switch h.GetKind() {
	case wire.KindExec:
		s.exec(ctx)
	case wire.KindConnect:
		s.connect(ctx)
	case wire.KindListen:
		s.listen(ctx)
	case wire.KindSFTP:
		s.files(ctx)
	case wire.KindReadTar:
		s.readTar(ctx)
	case wire.KindWriteTar:
		s.writeTar(ctx)
	}
}

// session is one stream that is being served.
type session struct {
	conn   wire.Conn
	header *v1.SessionHeader
	in     executor.Inside
	// cancel ends the session's work.
	cancel context.CancelCauseFunc
}

// accept replies to the header with success and a port, which is 0 for kinds without one.
func (s *session) accept(port int) error {
	return s.reply(&v1.SessionReply{Port: uint32(port)})
}

// reply completes a reply and sends it.
func (s *session) reply(r *v1.SessionReply) error {
	h := s.header
	r.RunId, r.Task, r.Claim, r.Node = h.GetRunId(), h.GetTask(), h.GetClaim(), h.GetNode()
	return wire.WriteMessage(s.conn, r)
}

// refuse replies to the header with an error.
func (s *session) refuse(err error) { wire.Refuse(s.conn, codeOf(err), lineOf(err)) }

// codeOf returns the Connect code for an error.
func codeOf(err error) string {
	var entry interface{ NotFound() bool }
	switch _, refused := errors.AsType[*executor.Refusal](err); {
	case errors.As(err, &entry) && !entry.NotFound(), refused:
		return "failed_precondition"
	case entry != nil, errors.Is(err, executor.ErrNotRunning), errors.Is(err, fs.ErrNotExist):
		return "not_found"
	case errors.Is(err, fs.ErrPermission):
		return "permission_denied"
	}
	if _, bad := errors.AsType[wire.HeaderError](err); bad || errors.Is(err, fs.ErrInvalid) || executor.AsStartError(err) != nil {
		return "invalid_argument"
	}
	if errors.Is(err, context.Canceled) {
		return "canceled"
	}
	return "internal"
}

// lineOf returns the text of an error as one line without control characters.
func lineOf(err error) string {
	if errors.Is(err, executor.ErrNotRunning) {
		return "the task has ended"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, err.Error())
}
