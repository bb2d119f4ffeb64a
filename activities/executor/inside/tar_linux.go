package inside

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"switchyard/activities/executor/tartree"
)

// pack writes the file or directory at a path to an archive. It follows a link at the path itself.
func pack(from string, to io.Writer) error {
	from, err := filepath.Abs(from)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(from)
	if err != nil {
		return tartree.WrapPath("read", from, err)
	}
	return tartree.Pack(source{}, from, real, to)
}

// source gives access to the files that this process sees.
type source struct{}

// Lstat describes a file. It does not look up the name of the owner, which would use code from the root that this
// process is in.
func (source) Lstat(file string) (tartree.Info, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return tartree.Info{}, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return tartree.Info{}, errors.New("its owner is unknown")
	}
	return tartree.Info{
		Mode: info.Mode(), ModTime: info.ModTime(), UID: int(stat.Uid), GID: int(stat.Gid),
		ID: [2]uint64{stat.Dev, stat.Ino}, Links: uint64(stat.Nlink),
	}, nil
}

// ReadDir returns the names in a directory in ascending order.
func (source) ReadDir(dir string) ([]string, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, errors.Join(err, f.Close())
}

// Readlink returns the target of a link.
func (source) Readlink(file string) (string, error) { return os.Readlink(file) }

// Open opens a file for reading and returns its size. It refuses anything but a regular file.
func (source) Open(file string) (io.ReadCloser, int64, error) {
	f, err := openRegular(file, os.O_RDONLY, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// unpack unpacks an archive into a directory, or with rename its single top-level entry to the path itself.
func unpack(to string, rename bool, from io.Reader) error {
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	dir, name, err := tartree.Destination(to, rename)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return tartree.WrapPath("write", dir, err)
	}
	defer root.Close()
	return tartree.Unpack(directoryRoot{root}, dir, name, from)
}

// directoryRoot is a directory that no name or link leads out of.
type directoryRoot struct{ *os.Root }

// Create creates a file that must not exist yet.
func (t directoryRoot) Create(name string) (tartree.File, error) {
	return t.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fs.FileMode(0o600))
}
