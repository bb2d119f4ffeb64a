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
	// archiveBuffer is how much of an archive is read or written at once.
	archiveBuffer = 256 << 10
	// maxPath bounds the length of a path, in bytes, as Linux does.
	maxPath = 4096
)

// Source are the files of which an archive is made, by their absolute paths.
type Source interface {
	// Lstat describes a file or a link.
	Lstat(file string) (Info, error)
	// ReadDir returns the names in a directory, in order.
	ReadDir(dir string) ([]string, error)
	Readlink(file string) (string, error)
	// Open opens a regular file, and returns its size.
	Open(file string) (io.ReadCloser, int64, error)
}

// Info describes a file.
type Info struct {
	Mode    fs.FileMode
	ModTime time.Time
	UID     int
	GID     int
	// ID is the same for the names of one file. Links is how many those are; 0 and 1 are of a file whose ID does not matter.
	ID    [2]uint64
	Links uint64
}

// packer writes an archive of files.
type packer struct {
	from Source
	to   *tar.Writer
	// links are the names of files with several, by what identifies them.
	links map[[2]uint64]string
	// first is the first of the errors over which files were left out, and more how many followed.
	first error
	more  int
}

// Pack writes what lies at a path to an archive. Names in it begin with the last element of the path. real is the same path without
// links. What cannot be read is left out, and is the error in the end.
func Pack(source Source, from, real string, to io.Writer) error {
	name := path.Base(from)
	if name == "/" {
		name = "."
	}
	if info, err := source.Lstat(real); err != nil {
		return About("read", from, err)
	} else if !info.Mode.IsRegular() && !info.Mode.IsDir() {
		return fmt.Errorf("read %s: it is neither a file nor a directory (%w)", from, fs.ErrInvalid)
	}
	buffer := bufio.NewWriterSize(to, archiveBuffer)
	p := &packer{from: source, to: tar.NewWriter(buffer), links: map[[2]uint64]string{}}
	if err := errors.Join(p.add(real, name), p.to.Close(), buffer.Flush()); err != nil {
		return About("read", from, err)
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
		p.first = About("read", file, err)
	default:
		p.more++
	}
}

// add adds a file under a name, and what is below it. Its error is that of the archive.
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

// addBelow adds what is in a directory.
func (p *packer) addBelow(dir, name string) error {
	names, err := p.from.ReadDir(dir)
	if err != nil {
		p.leaveOut(dir, err)
	}
	for _, one := range names {
		file := path.Join(dir, one)
		if len(file) > maxPath {
			p.leaveOut(dir, errors.New("the path of what is in it is too long"))
			return nil
		}
		if err := p.add(file, path.Join(name, one)); err != nil {
			return err
		}
	}
	return nil
}

// modeBits returns a mode as the system has it.
func modeBits(mode fs.FileMode) int64 {
	bits := int64(mode.Perm())
	for flag, bit := range map[fs.FileMode]int64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if mode&flag != 0 {
			bits |= bit
		}
	}
	return bits
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
