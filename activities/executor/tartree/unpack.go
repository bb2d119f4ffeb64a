package tartree

import (
	"archive/tar"
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"
)

// Target is a directory in which the files of an archive are created. Names are relative to it. If the last element of a name is
// a link, it is not followed. *os.Root has the same methods.
type Target interface {
	Lstat(name string) (fs.FileInfo, error)
	Mkdir(name string, mode fs.FileMode) error
	// Create creates a file that must not exist yet, accessible to its owner only.
	Create(name string) (File, error)
	Symlink(leads, name string) error
	Link(old, name string) error
	// Rename replaces a file that has the new name.
	Rename(old, name string) error
	Remove(name string) error
	Chmod(name string, mode fs.FileMode) error
	// Chtimes leaves a zero time unchanged.
	Chtimes(name string, access, modified time.Time) error
}

// File is a file that is being written.
type File interface {
	io.WriteCloser
	Chmod(mode fs.FileMode) error
}

// unpacker creates the files of an archive.
type unpacker struct {
	// dir is the path of root, for messages.
	dir  string
	root Target
	// rename is the new name of the archive's single top-level entry, or "" if it keeps its own. top is the entry's own name.
	rename, top string
	// made holds the directories that the unpacker created. They get their modes and times last.
	made []madeDir
	// checked is the last directory that makeParent found to be free of links.
	checked string
}

type madeDir struct {
	name   string
	header *tar.Header
}

// Destination returns the directory into which an archive for an absolute path is unpacked. With rename, dir is the parent of the path
// and name its last element.
func Destination(to string, rename bool) (dir, name string, err error) {
	if !rename {
		return to, "", nil
	}
	if dir, name = path.Split(to); name == "" {
		return "", "", fmt.Errorf("write %s: the path ends in a slash, so nothing can be renamed to it (%w)", to, fs.ErrInvalid)
	}
	return dir, name, nil
}

// Unpack creates the files of an archive in root, whose path is dir. If name is not empty, the archive's single top-level entry
// is renamed to it. A file appears under its own name only when it is complete. Unpack refuses entries that would lie outside, by
// their name or through a link.
func Unpack(root Target, dir, name string, from io.Reader) error {
	u := &unpacker{dir: dir, root: root, rename: name}
	to := path.Join(dir, name)
	buffer := bufio.NewReaderSize(from, archiveBuffer)
	archive := tar.NewReader(buffer)
	for {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("write %s: the archive is broken: %w (%w)", to, err, fs.ErrInvalid)
		}
		if err := u.add(header, archive); err != nil {
			return err
		}
	}
	if name != "" && u.top == "" {
		return fmt.Errorf("write %s: the archive is empty (%w)", to, fs.ErrInvalid)
	}
	if err := u.finish(); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, buffer) // the padding of the archive
	return err
}

// errRefused returns the error for an entry that is refused.
func errRefused(name, why string) error {
	return fmt.Errorf("archive entry %s is refused: %s (%w)", name, why, fs.ErrInvalid)
}

// resolveEntry returns the path of an entry below the root, or "." for the root itself.
func (u *unpacker) resolveEntry(name string) (string, error) {
	switch {
	case name == "" || strings.ContainsRune(name, 0):
		return "", errRefused(fmt.Sprintf("%q", name), "it has no usable name")
	case path.IsAbs(name):
		return "", errRefused(name, "its name is absolute")
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", errRefused(name, "its path leaves the target directory")
		}
	}
	name = path.Clean(name)
	if u.rename == "" {
		return name, nil
	}
	top, rest, _ := strings.Cut(name, "/")
	if u.top == "" {
		u.top = top
	}
	if top != u.top {
		return "", errRefused(name, fmt.Sprintf("a renamed archive must have a single top-level entry, and this one also has %s", u.top))
	}
	return path.Join(u.rename, rest), nil
}

func (u *unpacker) add(header *tar.Header, content io.Reader) error {
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := u.resolveEntry(header.Name)
	if err != nil {
		return err
	}
	if name == "." {
		if header.Typeflag != tar.TypeDir {
			return errRefused(header.Name, "it would replace the directory")
		}
		return nil
	}
	if err := u.makeParent(path.Dir(name)); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return u.addDir(name, header)
	case tar.TypeReg, tar.TypeRegA: //nolint:staticcheck // old archives have it
		return u.addFile(name, header, content)
	case tar.TypeSymlink:
		return u.addSymlink(name, header)
	case tar.TypeLink:
		return u.addLink(name, header)
	}
	return errRefused(header.Name, "only files, directories and links are supported")
}

// path returns the path of a name, for messages.
func (u *unpacker) path(name string) string { return path.Join(u.dir, name) }

// makeParent creates a directory for an entry if it is missing. It refuses a link on the way, since the link's target is not
// where the archive places the entry.
func (u *unpacker) makeParent(dir string) error {
	if dir == "." || dir == u.checked {
		return nil
	}
	at := ""
	for part := range strings.SplitSeq(dir, "/") {
		at = path.Join(at, part)
		info, err := u.root.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			err = u.root.Mkdir(at, 0o755)
			if err == nil {
				continue
			}
		}
		switch {
		case err != nil:
			return WrapPath("write", u.path(at), err)
		case info.Mode()&fs.ModeSymlink != 0:
			return errRefused(dir, "it lies behind the link "+u.path(at))
		case !info.IsDir():
			return fmt.Errorf("write %s: %s is not a directory", u.path(dir), u.path(at))
		}
	}
	u.checked = dir
	return nil
}

func (u *unpacker) addDir(name string, header *tar.Header) error {
	err := u.root.Mkdir(name, 0o700)
	if err == nil {
		u.made = append(u.made, madeDir{name, header})
		return nil
	}
	if !errors.Is(err, fs.ErrExist) {
		return WrapPath("write", u.path(name), err)
	}
	info, err := u.root.Lstat(name)
	if err != nil {
		return WrapPath("write", u.path(name), err)
	}
	if !info.IsDir() {
		return fmt.Errorf("write %s: a file or link already exists there, not a directory", u.path(name))
	}
	return nil
}

func (u *unpacker) addFile(name string, header *tar.Header, content io.Reader) error {
	return u.replace(name, func(part string) error {
		f, err := u.root.Create(part)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, io.LimitReader(content, header.Size)) // a File may rely on the known size
		if err == nil {
			err = f.Chmod(fs.FileMode(header.Mode & 0o777))
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		return u.root.Chtimes(part, time.Time{}, header.ModTime)
	})
}

// addSymlink creates a symbolic link. It refuses a link whose target lies outside the archive.
func (u *unpacker) addSymlink(name string, header *tar.Header) error {
	within := name
	if u.rename != "" {
		within = strings.TrimPrefix(strings.TrimPrefix(name, u.rename), "/")
	}
	leads := path.Join(path.Dir(within), header.Linkname)
	if within == "" || header.Linkname == "" || path.IsAbs(header.Linkname) || leads == ".." || strings.HasPrefix(leads, "../") {
		return errRefused(header.Name, fmt.Sprintf("it is a link that leads outside, to %s", header.Linkname))
	}
	return u.replace(name, func(part string) error { return u.root.Symlink(header.Linkname, part) })
}

// addLink creates a hard link to a file of the archive.
func (u *unpacker) addLink(name string, header *tar.Header) error {
	old, err := u.resolveEntry(header.Linkname)
	if err != nil {
		return errRefused(header.Name, fmt.Sprintf("it is a link that leads outside, to %s", header.Linkname))
	}
	info, err := u.root.Lstat(old)
	if err != nil {
		return WrapPath("write", u.path(name), err)
	}
	if !info.Mode().IsRegular() {
		return errRefused(header.Name, fmt.Sprintf("it is a hard link to %s, which is not a file", header.Linkname))
	}
	return u.replace(name, func(part string) error { return u.root.Link(old, part) })
}

// replace writes a file under a temporary name beside its own and renames it once it is complete.
func (u *unpacker) replace(name string, fill func(part string) error) error {
	part := path.Join(path.Dir(name), ".switchyard-"+rand.Text()+".part")
	// The temporary name may survive the rename: renaming one hard link of a file to another does nothing.
	defer func() { _ = u.root.Remove(part) }()
	if err := fill(part); err != nil {
		return WrapPath("write", u.path(name), err)
	}
	if err := u.root.Rename(part, name); err != nil {
		return WrapPath("write", u.path(name), err)
	}
	return nil
}

// finish gives the created directories their modes and times, deepest first.
func (u *unpacker) finish() error {
	for i := len(u.made) - 1; i >= 0; i-- {
		one := u.made[i]
		if err := u.root.Chtimes(one.name, time.Time{}, one.header.ModTime); err != nil {
			return WrapPath("write", u.path(one.name), err)
		}
		mode := fs.FileMode(one.header.Mode & 0o777)
		if one.header.Mode&0o1000 != 0 {
			mode |= fs.ModeSticky
		}
		if err := u.root.Chmod(one.name, mode); err != nil {
			return WrapPath("write", u.path(one.name), err)
		}
	}
	return nil
}
