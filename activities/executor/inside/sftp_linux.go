package inside

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/pkg/sftp"
	"golang.org/x/sys/unix"
)

// serveFiles serves the files of this process over SFTP until its input ends.
func serveFiles(dir string, in io.Reader, out io.WriteCloser) error {
	s := sftpFiles{}
	server := sftp.NewRequestServer(struct {
		io.Reader
		io.WriteCloser
	}{in, out}, sftp.Handlers{FileGet: s, FilePut: s, FileCmd: s, FileList: s}, sftp.WithStartDirectory(dir))
	err := server.Serve()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, unix.EPIPE) {
		return nil // the client has left
	}
	return err
}

// sftpFiles answers SFTP requests with the files that this process sees. sftp.Server does the same, but looks up the names of
// owners, using code from the root that this process is in.
type sftpFiles struct{}

// Fileread opens a file for reading.
func (sftpFiles) Fileread(r *sftp.Request) (io.ReaderAt, error) {
	return openRegular(r.Filepath, os.O_RDONLY, 0)
}

// Filewrite opens a file for writing.
func (s sftpFiles) Filewrite(r *sftp.Request) (io.WriterAt, error) { return s.write(r, os.O_WRONLY) }

// OpenFile opens a file for reading and writing.
func (s sftpFiles) OpenFile(r *sftp.Request) (sftp.WriterAtReaderAt, error) {
	return s.write(r, os.O_RDWR)
}

// write opens a file for writing. Every write carries an offset, so append mode is not needed.
func (sftpFiles) write(r *sftp.Request, flags int) (*os.File, error) {
	asked := r.Pflags()
	if asked.Creat {
		flags |= os.O_CREATE
	}
	if asked.Trunc {
		flags |= os.O_TRUNC
	}
	if asked.Excl {
		flags |= os.O_EXCL
	}
	return openRegular(r.Filepath, flags, modeOf(r))
}

// modeOf returns the mode of a new file. Clients such as scp send the mode as the only attribute. The sftp package does not
// expose which attributes a request has, but an attribute of four bytes can only be the mode.
func modeOf(r *sftp.Request) fs.FileMode {
	if len(r.Attrs) != 4 {
		return 0o666
	}
	return fs.FileMode(binary.BigEndian.Uint32(r.Attrs)).Perm()
}

// Filecmd carries out requests that change files.
func (sftpFiles) Filecmd(r *sftp.Request) error {
	switch r.Method {
	case "Setstat":
		return setAttributes(r)
	case "Rename":
		// SFTP version 3 does not replace an existing file; posix-rename does.
		if _, err := os.Lstat(r.Target); err == nil {
			return &fs.PathError{Op: "rename", Path: r.Target, Err: fs.ErrExist}
		}
		return os.Rename(r.Filepath, r.Target)
	case "Rmdir":
		return unix.Rmdir(r.Filepath)
	case "Mkdir":
		return os.Mkdir(r.Filepath, 0o777)
	case "Link":
		return os.Link(r.Filepath, r.Target)
	case "Symlink":
		return os.Symlink(r.Filepath, r.Target)
	case "Remove":
		return unix.Unlink(r.Filepath)
	}
	return sftp.ErrSSHFxOpUnsupported
}

// PosixRename renames a file and replaces an existing one.
func (sftpFiles) PosixRename(r *sftp.Request) error { return os.Rename(r.Filepath, r.Target) }

// StatVFS describes the file system of a path.
func (sftpFiles) StatVFS(r *sftp.Request) (*sftp.StatVFS, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(r.Filepath, &s); err != nil {
		return nil, err
	}
	return &sftp.StatVFS{
		Bsize: uint64(s.Bsize), Frsize: uint64(s.Frsize), Blocks: s.Blocks, Bfree: s.Bfree, Bavail: s.Bavail,
		Files: s.Files, Ffree: s.Ffree, Favail: s.Ffree, Flag: uint64(s.Flags), Namemax: uint64(s.Namelen),
	}, nil
}

func setAttributes(r *sftp.Request) error {
	wanted, values := r.AttrFlags(), r.Attributes()
	if wanted.Size {
		if info, err := os.Stat(r.Filepath); err != nil {
			return err
		} else if !info.Mode().IsRegular() {
			return &fs.PathError{Op: "truncate", Path: r.Filepath, Err: unix.EINVAL}
		}
		if err := os.Truncate(r.Filepath, int64(values.Size)); err != nil {
			return err
		}
	}
	if wanted.UidGid {
		if err := os.Chown(r.Filepath, int(values.UID), int(values.GID)); err != nil {
			return err
		}
	}
	if wanted.Permissions {
		if err := os.Chmod(r.Filepath, values.FileMode()); err != nil {
			return err
		}
	}
	if wanted.Acmodtime {
		return os.Chtimes(r.Filepath, values.AccessTime(), values.ModTime())
	}
	return nil
}

// Filelist lists a directory, or describes a file.
func (sftpFiles) Filelist(r *sftp.Request) (sftp.ListerAt, error) {
	if r.Method == "List" {
		f, err := os.OpenFile(r.Filepath, os.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			return nil, err
		}
		return directory{f}, nil
	}
	info, err := os.Stat(r.Filepath)
	return single{info}, err
}

// Lstat describes a file, without following a link.
func (sftpFiles) Lstat(r *sftp.Request) (sftp.ListerAt, error) {
	info, err := os.Lstat(r.Filepath)
	return single{info}, err
}

// Readlink returns the target of a link.
func (sftpFiles) Readlink(path string) (string, error) { return os.Readlink(path) }

// directory lists its entries in the order of the file system. It relies on sequential calls.
type directory struct{ *os.File }

// ListAt returns the next entries of the directory.
func (d directory) ListAt(to []fs.FileInfo, _ int64) (int, error) {
	infos, err := d.Readdir(len(to))
	return copy(to, infos), err
}

type single struct{ info fs.FileInfo }

// ListAt returns the single entry.
func (s single) ListAt(to []fs.FileInfo, offset int64) (int, error) {
	if offset > 0 || len(to) == 0 {
		return 0, io.EOF
	}
	to[0] = s.info
	return 1, io.EOF
}
