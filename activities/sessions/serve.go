package sessions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode"

	"switchyard/activities/executor"
	"switchyard/activities/sessions/wire"
	v1 "switchyard/proto/switchyard/v1"
)

// The kinds of a session, see v1.SessionHeader.
const (
	kindExec     = "exec"
	kindConnect  = "connect"
	kindListen   = "listen"
	kindSFTP     = "sftp"
	kindReadTar  = "read_tar"
	kindWriteTar = "write_tar"
)

// Attempts are the attempts of a node.
type Attempts interface {
	// Enter returns the inside of the attempt that a header names. The function is called when the session is over. An error with
	// a method NotFound that returns true says that no such attempt runs here.
	Enter(ctx context.Context, h *v1.SessionHeader) (executor.Inside, func(), error)
}

// Serve answers the header of a stream, does what it asks for, and closes the stream. It returns soon after the client has left,
// ctx or the attempt has ended.
func Serve(ctx context.Context, conn wire.Conn, h *v1.SessionHeader, attempts Attempts) {
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &session{conn: conn, header: h, cancel: cancel}
	if err := s.check(); err != nil {
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
	case kindExec:
		s.exec(ctx)
	case kindConnect:
		s.connect(ctx)
	case kindListen:
		s.listen(ctx)
	case kindSFTP:
		s.files(ctx)
	case kindReadTar:
		s.readTar(ctx)
	case kindWriteTar:
		s.writeTar(ctx)
	}
}

// session is a stream that is being served.
type session struct {
	conn   wire.Conn
	header *v1.SessionHeader
	in     executor.Inside
	// cancel ends what the session does.
	cancel context.CancelCauseFunc
}

// badHeader is an error of the client.
type badHeader string

// Error returns the text.
func (b badHeader) Error() string { return string(b) }

// check returns what is wrong with a header.
func (s *session) check() error {
	h := s.header
	switch h.GetKind() {
	case kindExec:
		switch e := h.GetExec(); {
		case e == nil:
			return badHeader("the session is to run a program, and does not say which; the client and the node have different versions")
		case len(e.GetCommand()) > 0 && e.GetLine() != "":
			return badHeader("the session has both a command and a line for a shell; it can have one of them")
		}
	case kindConnect:
		if h.GetPort() < 1 || h.GetPort() > 65535 {
			return badHeader(fmt.Sprintf("%d is not a port; ports are from 1 to 65535", h.GetPort()))
		}
	case kindListen:
		if h.GetPort() > 65535 {
			return badHeader(fmt.Sprintf("%d is not a port; ports are from 0, for any that is free, to 65535", h.GetPort()))
		}
	case kindReadTar, kindWriteTar:
		if h.GetPath() == "" || strings.ContainsRune(h.GetPath(), 0) {
			return badHeader("the session has no path of a file")
		}
	case kindSFTP:
	default:
		return badHeader(fmt.Sprintf("this node has no sessions of kind %q; upgrade it", h.GetKind()))
	}
	return nil
}

// accept answers the header.
func (s *session) accept(port int) error {
	h := s.header
	return wire.WriteMessage(s.conn, &v1.SessionReply{
		Port: uint32(port), RunId: h.GetRunId(), Task: h.GetTask(), Claim: h.GetClaim(), Node: h.GetNode(),
	})
}

// refuse answers the header with an error.
func (s *session) refuse(err error) { wire.Refuse(s.conn, codeOf(err), lineOf(err)) }

// codeOf returns the Connect code of an error.
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
	if _, bad := errors.AsType[badHeader](err); bad || errors.Is(err, fs.ErrInvalid) || executor.AsStartError(err) != nil {
		return "invalid_argument"
	}
	if errors.Is(err, context.Canceled) {
		return "canceled"
	}
	return "internal"
}

// lineOf returns the text of an error in one line, without what a terminal would obey.
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
