package tartree

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"
)

const (
	// archiveBuffer is how much of an archive is read or written at once, in bytes.
	archiveBuffer = 256 << 10
	// maxPath bounds the length of a path in bytes, as Linux does.
	maxPath = 4096
)

// Source gives access to the files that go into an archive, by their absolute paths.
type Source interface {
	// Lstat describes a file, without following a link.
	Lstat(file string) (Info, error)
	// ReadDir returns the names in a directory in ascending order.
	ReadDir(dir string) ([]string, error)
	Readlink(file string) (string, error)
	// Open opens a regular file and returns its size.
	Open(file string) (io.ReadCloser, int64, error)
}

// Info describes a file.
type Info struct {
	Mode    fs.FileMode
	ModTime time.Time
	UID     int
	GID     int
	// ID is the same for all hard links of a file. Links is the number of hard links; with 0 or 1 the ID is not used.
	ID    [2]uint64
	Links uint64
}

// packer writes an archive of files.
type packer struct {
	from Source
	to   *tar.Writer
	// links maps the ID of a file with several hard links to its first name in the archive.
	links map[[2]uint64]string
	// first is the error for the first file that was left out, and more counts the files left out after it.
	first error
	more  int
}

// Pack writes the file or directory at a path to an archive. Names in the archive begin with the last element of from. real is
// the same path with links resolved. Pack leaves out what it cannot read and reports it in the returned error.
func Pack(source Source, from, real string, to io.Writer) error {
	name := path.Base(from)
	if name == "/" {
		name = "."
	}
	if info, err := source.Lstat(real); err != nil {
		return WrapPath("read", from, err)
	} else if !info.Mode.IsRegular() && !info.Mode.IsDir() {
		return fmt.Errorf("read %s: it is neither a file nor a directory (%w)", from, fs.ErrInvalid)
	}
	buffer := bufio.NewWriterSize(to, archiveBuffer)
	p := &packer{from: source, to: tar.NewWriter(buffer), links: map[[2]uint64]string{}}
	if err := errors.Join(p.add(real, name), p.to.Close(), buffer.Flush()); err != nil {
		return WrapPath("read", from, err)
	}
	if p.more > 0 {
		return fmt.Errorf("%w (and %d more)", p.first, p.more)
	}
	return p.first
}

// leaveOut records a file that could not be read. It ignores a file that was removed meanwhile.
func (p *packer) leaveOut(file string, err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case p.first == nil:
		p.first = WrapPath("read", file, err)
	default:
		p.more++
	}
}

// add adds a file under a name, and everything below it. It returns only errors of writing the archive.
func (p *packer) add(file, name string) error {
	info, err := p.from.Lstat(file)
	if err != nil {
		p.leaveOut(file, err)
		return nil
	}
	header := &tar.Header{
		Format: tar.FormatPAX, Name: name, Mode: modeBits(info.Mode), ModTime: info.ModTime, Uid: info.UID, Gid: info.GID,
	}
	switch {
	case info.Mode.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, name+"/"
		if err := p.to.WriteHeader(header); err != nil {
			return err
		}
		return p.addBelow(file, name)
	case info.Mode&fs.ModeSymlink != 0:
		header.Typeflag = tar.TypeSymlink
		if header.Linkname, err = p.from.Readlink(file); err != nil {
			p.leaveOut(file, err)
			return nil
		}
		return p.to.WriteHeader(header)
	case !info.Mode.IsRegular():
		return nil
	}
	if first, again := p.links[info.ID]; again && info.Links > 1 {
		header.Typeflag, header.Linkname = tar.TypeLink, first
		return p.to.WriteHeader(header)
	}
	content, size, err := p.from.Open(file)
	if err != nil {
		p.leaveOut(file, err)
		return nil
	}
	defer content.Close()
	header.Typeflag, header.Size = tar.TypeReg, size
	if err := p.to.WriteHeader(header); err != nil {
		return err
	}
	if info.Links > 1 {
		p.links[info.ID] = name
	}
	return p.copy(file, content, header.Size)
}

// addBelow adds the contents of a directory.
func (p *packer) addBelow(dir, name string) error {
	names, err := p.from.ReadDir(dir)
	if err != nil {
		p.leaveOut(dir, err)
	}
	for _, one := range names {
		file := path.Join(dir, one)
		if len(file) > maxPath {
			p.leaveOut(dir, errors.New("it contains a path that is too long"))
			return nil
		}
		if err := p.add(file, path.Join(name, one)); err != nil {
			return err
		}
	}
	return nil
}

// modeBits returns a mode as Unix permission bits.
func modeBits(mode fs.FileMode) int64 {
	bits := int64(mode.Perm())
	for flag, bit := range map[fs.FileMode]int64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if mode&flag != 0 {
			bits |= bit
		}
	}
	return bits
}

// copy copies the content of a file, which may grow or shrink meanwhile. It pads a file that has shrunk with zeros.
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
		err = errors.New("it shrank while it was read")
	}
	p.leaveOut(file, err)
	_, err = io.CopyN(p.to, zeros{}, size-n)
	return err
}

// reading records read errors, so that copy can tell them from write errors.
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
