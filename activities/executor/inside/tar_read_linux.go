package inside

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// archiveBuffer is how much of an archive is read or written at once.
const archiveBuffer = 256 << 10

// packer writes an archive of files.
type packer struct {
	to *tar.Writer
	// links are the names of files with several, by what identifies them.
	links map[[2]uint64]string
	// first is the first of the errors over which files were left out, and more how many followed.
	first error
	more  int
}

// pack writes what lies at a path to an archive. A link at the path itself is followed.
func pack(from string, to io.Writer) error {
	from, err := filepath.Abs(from)
	if err != nil {
		return err
	}
	name := path.Base(from)
	if name == "/" {
		name = "."
	}
	real, err := filepath.EvalSymlinks(from)
	if err != nil {
		return about("read", from, err)
	}
	if info, err := os.Lstat(real); err != nil {
		return about("read", from, err)
	} else if !info.Mode().IsRegular() && !info.IsDir() {
		return fmt.Errorf("read %s: it is neither a file nor a directory (%w)", from, fs.ErrInvalid)
	}
	buffer := bufio.NewWriterSize(to, archiveBuffer)
	p := &packer{to: tar.NewWriter(buffer), links: map[[2]uint64]string{}}
	err = filepath.WalkDir(real, func(file string, _ fs.DirEntry, err error) error {
		if err != nil {
			p.leaveOut(file, err)
			return nil
		}
		rest, err := filepath.Rel(real, file)
		if err != nil {
			return err
		}
		return p.add(file, path.Join(name, rest))
	})
	if err = errors.Join(err, p.to.Close(), buffer.Flush()); err != nil {
		return about("read", from, err)
	}
	if p.more > 0 {
		return fmt.Errorf("%w (and %d more)", p.first, p.more)
	}
	return p.first
}

// leaveOut notes a file that cannot be read. One that was removed meanwhile is none.
func (p *packer) leaveOut(file string, err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case p.first == nil:
		p.first = about("read", file, err)
	default:
		p.more++
	}
}

// add adds a file under a name. Its error is that of the archive.
func (p *packer) add(file, name string) error {
	info, err := os.Lstat(file)
	if err != nil {
		p.leaveOut(file, err)
		return nil
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s has no owner", file)
	}
	// By hand: tar.FileInfoHeader looks up the names of owners, with code of the root that this process is in.
	header := &tar.Header{
		Format: tar.FormatPAX, Name: name, Mode: int64(stat.Mode & 0o7777), ModTime: info.ModTime(), Uid: int(stat.Uid), Gid: int(stat.Gid),
	}
	switch {
	case info.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, name+"/"
		return p.to.WriteHeader(header)
	case info.Mode()&fs.ModeSymlink != 0:
		header.Typeflag = tar.TypeSymlink
		if header.Linkname, err = os.Readlink(file); err != nil {
			p.leaveOut(file, err)
			return nil
		}
		return p.to.WriteHeader(header)
	case !info.Mode().IsRegular():
		return nil
	}
	id := [2]uint64{stat.Dev, stat.Ino}
	if first, again := p.links[id]; again {
		header.Typeflag, header.Linkname = tar.TypeLink, first
		return p.to.WriteHeader(header)
	}
	content, err := openRegular(file, os.O_RDONLY, 0)
	if err != nil {
		p.leaveOut(file, err)
		return nil
	}
	defer content.Close()
	if info, err = content.Stat(); err != nil {
		p.leaveOut(file, err)
		return nil
	}
	header.Typeflag, header.Size = tar.TypeReg, info.Size()
	if err := p.to.WriteHeader(header); err != nil {
		return err
	}
	if stat.Nlink > 1 {
		p.links[id] = name
	}
	return p.copy(file, content, header.Size)
}

// copy copies the content of a file, which may grow or shrink meanwhile.
func (p *packer) copy(file string, content io.Reader, size int64) error {
	source := &reading{from: io.LimitReader(content, size)}
	n, err := io.Copy(p.to, source)
	if err != nil && source.err == nil {
		return err
	}
	if n == size {
		return nil
	}
	if err == nil {
		err = errors.New("it became shorter while it was read")
	}
	p.leaveOut(file, err)
	_, err = io.CopyN(p.to, zeros{}, size-n)
	return err
}

// reading distinguishes the errors of a reader from those of what it is copied to.
type reading struct {
	from io.Reader
	err  error
}

func (r *reading) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// openRegular opens a regular file and nothing else: a device would be opened past what keeps the process from it, and a pipe
// would wait for its other end.
func openRegular(file string, flags int, mode fs.FileMode) (*os.File, error) {
	wrong := &fs.PathError{Op: "open", Path: file, Err: errors.New("it is not a regular file")}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, wrong
	}
	f, err := os.OpenFile(file, flags|unix.O_NONBLOCK|unix.O_NOCTTY, mode)
	if err != nil {
		return nil, err
	}
	// It may have been replaced in between.
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		if err == nil && info.IsDir() {
			return nil, &fs.PathError{Op: "open", Path: file, Err: unix.EISDIR}
		}
		return nil, wrong
	}
	return f, nil
}
