package guest

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

const (
	// exitWait is how long to wait for the exit code of an sftp-server after its output has ended.
	exitWait = 10 * time.Second
	// cleanWait is how long the removal of a partial file may take after the caller is gone.
	cleanWait = 10 * time.Second
)

// noSFTP is the text of the Refusal for a machine without an sftp-server.
const noSFTP = "the machine does not serve files: install an sftp-server for its sshd (package openssh-sftp-server or openssh-server)"

// ServeFiles serves the files of the machine through the sftp-server of its sshd, as the user who logs in. Relative
// paths begin in that user's home.
func (g *Guest) ServeFiles(ctx context.Context, user string, conn io.ReadWriter) error {
	ctx, done := g.attemptContext(ctx)
	defer done()
	s, err := g.openSFTP(ctx, user)
	if err != nil {
		return err
	}
	defer s.Close()
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	go func() { // not waited for: a Read may be under way
		_, _ = io.Copy(s, conn)
		_ = s.CloseWrite()
	}()
	n, err := io.Copy(conn, s)
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case n == 0 && s.isMissing():
		return refuse("%s", noSFTP)
	case err != nil:
		return fmt.Errorf("serve the files of the machine: %w", err)
	}
	return nil
}

// openSFTP starts the sftp-server of the machine.
func (g *Guest) openSFTP(ctx context.Context, user string) (*stream, error) {
	if err := g.checkUser(user); err != nil {
		return nil, err
	}
	c, err := g.startSession(ctx, request{"subsystem", ssh.Marshal(struct{ Name string }{"sftp"}), noSFTP})
	if err != nil {
		return nil, err
	}
	return newStream(c, nil, nil), nil
}

// isMissing reports whether the program of a session could not be started.
func (s *stream) isMissing() bool {
	select {
	case <-s.over:
		return s.exit.Code == 126 || s.exit.Code == 127
	case <-time.After(exitWait):
		return false
	}
}

// filesystem provides the files of the machine over SFTP.
type filesystem struct {
	*sftp.Client
	stream *stream
	input  *countedReader
}

// openFiles returns the files of the machine. They are closed when ctx has ended and grace is over.
func (g *Guest) openFiles(ctx context.Context, user string, grace time.Duration) (_ *filesystem, done func(), err error) {
	s, err := g.openSFTP(ctx, user)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() {
		late := time.AfterFunc(grace, func() { _ = s.Close() })
		<-s.closed
		late.Stop()
	})
	f := &filesystem{stream: s, input: &countedReader{from: s}}
	f.Client, err = sftp.NewClientPipe(f.input, s, sftp.UseConcurrentReads(true), sftp.UseConcurrentWrites(true))
	if err == nil {
		return f, func() { stop(); _ = s.Close(); _ = f.Client.Close() }, nil
	}
	stop()
	_ = s.Close()
	switch {
	case context.Cause(ctx) != nil:
		return nil, nil, context.Cause(ctx)
	case s.isMissing():
		return nil, nil, refuse("%s", noSFTP)
	}
	return nil, nil, fmt.Errorf("read the files of the machine: %w", err)
}

// countedReader counts bytes read, and calls a function when a limit is exceeded.
type countedReader struct {
	from  io.Reader
	limit atomic.Pointer[readLimit]
}

// readLimit is how many more bytes may be read.
type readLimit struct {
	left   atomic.Int64
	exceed func()
}

// Read reads from the underlying reader, counts the bytes, and calls exceed once they exceed the limit.
func (r *countedReader) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	if l := r.limit.Load(); l != nil && l.left.Add(-int64(n)) < 0 {
		l.exceed()
	}
	return n, err
}
