package guest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/pkg/sftp"

	"switchyard/activities/executor"
	"switchyard/activities/executor/tartree"
)

const (
	// readAhead is how much of a file is requested at once, in bytes.
	readAhead = 1 << 20
	// maxListing bounds how much the machine may send as the listing of one directory, in bytes.
	maxListing = 256 << 20
)

// ReadTar writes the tree at a path to an archive, as the user who logs in.
func (g *Guest) ReadTar(ctx context.Context, user, at string, to io.Writer) error {
	ctx, done := g.attemptContext(ctx)
	defer done()
	files, end, err := g.openFiles(ctx, user, 0)
	if err != nil {
		return err
	}
	defer end()
	at, err = files.absolute(g.resolve(at))
	if err == nil {
		var real string
		if real, err = files.RealPath(at); err == nil {
			err = tartree.Pack(&source{files: files, ctx: ctx, known: map[string]fs.FileInfo{}}, at, real, to)
		} else {
			err = tartree.WrapPath("read", at, err)
		}
	}
	return files.outcome(ctx, err)
}

// WriteTar unpacks an archive, as the user who logs in.
func (g *Guest) WriteTar(ctx context.Context, user, at string, rename bool, from io.Reader) error {
	ctx, done := g.attemptContext(ctx)
	defer done()
	files, end, err := g.openFiles(ctx, user, cleanWait)
	if err != nil {
		return err
	}
	defer end()
	archive, sent := io.Pipe()
	defer archive.Close()
	stop := context.AfterFunc(ctx, func() { _ = archive.CloseWithError(context.Cause(ctx)) })
	defer stop()
	failed := make(chan error, 1)
	go func() { // not waited for: a Read may be under way
		_, err := io.Copy(sent, from)
		if err != nil && !errors.Is(err, io.ErrClosedPipe) {
			failed <- err
		}
		_ = sent.CloseWithError(err)
	}()
	err = files.unpack(g.resolve(at), rename, archive)
	select {
	case err := <-failed:
		return err
	default:
		return files.outcome(ctx, err)
	}
}

func (f *filesystem) unpack(to string, rename bool, from io.Reader) error {
	to, err := f.absolute(to)
	if err != nil {
		return err
	}
	dir, name, err := tartree.Destination(to, rename)
	if err != nil {
		return err
	}
	real, err := f.RealPath(dir)
	if err == nil {
		var info fs.FileInfo
		if info, err = f.Stat(real); err == nil && !info.IsDir() {
			err = errors.New("it is not a directory")
		}
	}
	if err != nil {
		return tartree.WrapPath("write", dir, err)
	}
	return tartree.Unpack(&target{f, real}, dir, name, from)
}

// absolute returns a cleaned absolute path.
func (f *filesystem) absolute(name string) (string, error) {
	if path.IsAbs(name) {
		return path.Clean(name), nil
	}
	home, err := f.Getwd()
	if err != nil {
		return "", tartree.WrapPath("read", name, err)
	}
	return path.Join(home, name), nil
}

// filesError reports on one line why files could not be read or written.
type filesError struct {
	text string
	err  error
}

func (e *filesError) Error() string { return e.text }
func (e *filesError) Unwrap() error { return e.err }

// outcome returns the error of a call about files: the cause of ctx if ctx has ended, else the error of the file
// operation.
func (f *filesystem) outcome(ctx context.Context, err error) error {
	_, isRefusal := errors.AsType[*executor.Refusal](err)
	switch {
	case err == nil:
		return nil
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case isRefusal:
		return err
	}
	return &filesError{tartree.OneLine(err.Error()), err}
}

// source adapts the files of the machine to an archive.
type source struct {
	files *filesystem
	ctx   context.Context
	// known caches what directory listings have revealed about files that were not visited yet.
	known map[string]fs.FileInfo
}

// Lstat describes a file. SFTP does not report other names of the file.
func (s *source) Lstat(file string) (tartree.Info, error) {
	info, ok := s.known[file]
	delete(s.known, file)
	if !ok {
		var err error
		if info, err = s.files.Lstat(file); err != nil {
			return tartree.Info{}, err
		}
	}
	described := tartree.Info{Mode: info.Mode(), ModTime: info.ModTime()}
	if stat, ok := info.Sys().(*sftp.FileStat); ok {
		described.UID, described.GID = int(stat.UID), int(stat.GID)
	}
	return described, nil
}

// ReadDir returns the names in a directory.
func (s *source) ReadDir(dir string) ([]string, error) {
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	limit := &readLimit{exceed: func() { cancel(errors.New("the directory has too many entries")) }}
	limit.left.Store(maxListing)
	s.files.input.limit.Store(limit)
	defer s.files.input.limit.Store(nil)
	infos, err := s.files.ReadDirContext(ctx, dir)
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(infos))
	for _, info := range infos {
		name := info.Name()
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
			return nil, errors.New("the machine listed an invalid file name")
		}
		s.known[path.Join(dir, name)] = info
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Readlink returns the target of a link.
func (s *source) Readlink(file string) (string, error) { return s.files.ReadLink(file) }

// Open opens a file. It requests much of the file at once rather than piece by piece.
func (s *source) Open(file string) (io.ReadCloser, int64, error) {
	f, err := s.files.Open(file)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	if info.Size() < 0 {
		return nil, 0, errors.Join(errors.New("the machine reported an invalid file size"), f.Close())
	}
	ahead := bufio.NewReaderSize(f, int(min(max(info.Size(), 16), readAhead)))
	return struct {
		io.Reader
		io.Closer
	}{ahead, f}, info.Size(), nil
}

// target is a directory of the machine that an archive is unpacked to.
type target struct {
	files *filesystem
	dir   string
}

func (t *target) path(name string) string { return path.Join(t.dir, name) }

// Lstat describes a file or a link.
func (t *target) Lstat(name string) (fs.FileInfo, error) { return t.files.Lstat(t.path(name)) }

// Mkdir creates a directory. It checks for an existing one itself, because SFTP does not report why a directory cannot
// be created.
func (t *target) Mkdir(name string, mode fs.FileMode) error {
	if err := t.files.Mkdir(t.path(name)); err != nil {
		if _, missing := t.Lstat(name); missing == nil {
			return fs.ErrExist
		}
		return err
	}
	return t.Chmod(name, mode)
}

// Create creates a file. Nothing is written to it before other users are locked out.
func (t *target) Create(name string) (tartree.File, error) {
	f, err := t.files.OpenFile(t.path(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(0o600); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Symlink creates a symbolic link.
func (t *target) Symlink(leads, name string) error { return t.files.Symlink(leads, t.path(name)) }

// Link gives a file another name.
func (t *target) Link(old, name string) error { return t.files.Link(t.path(old), t.path(name)) }

// Rename replaces a file, atomically if the sftp-server can.
func (t *target) Rename(old, name string) error {
	if _, can := t.files.HasExtension("posix-rename@openssh.com"); can {
		return t.files.PosixRename(t.path(old), t.path(name))
	}
	if info, err := t.Lstat(name); err == nil && !info.IsDir() {
		if err := t.files.Client.Remove(t.path(name)); err != nil {
			return err
		}
	}
	return t.files.Rename(t.path(old), t.path(name))
}

// Remove removes a file.
func (t *target) Remove(name string) error { return t.files.Client.Remove(t.path(name)) }

// Chmod sets the mode of a file.
func (t *target) Chmod(name string, mode fs.FileMode) error { return t.files.Chmod(t.path(name), mode) }

// Chtimes sets the times of a file. SFTP requires both, so a zero access time becomes now.
func (t *target) Chtimes(name string, access, modified time.Time) error {
	if access.IsZero() {
		access = time.Now()
	}
	return t.files.Chtimes(t.path(name), access, modified)
}
