package sessions

import (
	"context"
	"io"
	"sync"

	"switchyard/activities/sessions/wire"
)

// files serves the attempt's files over SFTP.
func (s *session) files(ctx context.Context) {
	if s.accept(0) != nil {
		return
	}
	if err := s.in.ServeFiles(ctx, s.header.GetUser(), s.conn); err != nil {
		wire.Abort(s.conn, lineOf(err))
	}
}

// readTar sends an archive of a path to the client.
func (s *session) readTar(ctx context.Context) {
	if s.accept(0) != nil {
		return
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		_, _ = io.Copy(io.Discard, s.conn) // until the client leaves
		s.cancel(errLeft)
	})
	out := &frames{conn: s.conn}
	err := s.in.ReadTar(ctx, s.header.GetUser(), s.header.GetPath(), out.stdout())
	out.exit(0, "", err)
	_ = s.conn.Close()
	reading.Wait()
}

// writeTar unpacks an archive that the client sends.
func (s *session) writeTar(ctx context.Context) {
	if s.accept(0) != nil {
		return
	}
	err := s.in.WriteTar(ctx, s.header.GetUser(), s.header.GetPath(), s.header.GetRename(), &archive{conn: s.conn})
	(&frames{conn: s.conn}).exit(0, "", err)
}
