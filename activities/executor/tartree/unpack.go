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

// Target is a directory in which the files of an archive are made. Names are relative to it, and the last element of one that is a
// link is not followed. It has the methods of an *os.Root.
type Target interface {
	Lstat(name string) (fs.FileInfo, error)
	Mkdir(name string, mode fs.FileMode) error
	// Create makes a file that did not exist, for its owner alone.
	Create(name string) (File, error)
	Symlink(leads, name string) error
	Link(old, name string) error
	// Rename replaces a file.
	Rename(old, name string) error
	Remove(name string) error
	Chmod(name string, mode fs.FileMode) error
	// Chtimes leaves a time as it is that is zero.
	Chtimes(name string, access, modified time.Time) error
}

// File is a file that is being made.
type File interface {
	io.WriteCloser
	Chmod(mode fs.FileMode) error
}

// unpacker makes the files of an archive.
type unpacker struct {
	// dir is where they are made, for messages, and root makes them there.
	dir  string
	root Target
	// rename is the name that the one top element of the archive gets, or "" if it keeps its own; top is its own.
	rename, top string
	// made are the directories that did not exist before. They get their modes and times last.
	made []madeDir
	// checked is the last directory that makeParent has found no link on the way to.
	checked string
}

type madeDir struct {
	name   string
	header *tar.Header
}

// Place returns the directory in which an archive for an absolute path is unpacked. With rename that is the one that the path is in,
// and name is its last element.
func Place(to string, rename bool) (dir, name string, err error) {
	if !rename {
		return to, "", nil
	}
	if dir, name = path.Split(to); name == "" {
		return "", "", fmt.Errorf("write %s: it has no name of its own (%w)", to, fs.ErrInvalid)
	}
	return dir, name, nil
}

// Unpack makes the files of an archive in a directory, whose path is dir. With a name the one top element of the archive gets it. A
// file has its own name when it is whole. What would lie outside, by its name or through a link, is refused.
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
	_, err := io.Copy(io.Discard, buffer) // what pads the archive
	return err
}

// refused returns the error of an entry that is not made.
func refused(name, why string) error {
	return fmt.Errorf("the archive's %s is refused: %s (%w)", name, why, fs.ErrInvalid)
}

// inside returns the name of an entry below the root, "." for the root itself.
func (u *unpacker) inside(name string) (string, error) {
	switch {
	case name == "" || strings.ContainsRune(name, 0):
		return "", refused(fmt.Sprintf("%q", name), "it has no usable name")
	case path.IsAbs(name):
		return "", refused(name, "its name is absolute")
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", refused(name, "its name leads outside")
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
		return "", refused(name, fmt.Sprintf("only one file or directory can be renamed, and the archive also has %s", u.top))
	}
	return path.Join(u.rename, rest), nil
}

func (u *unpacker) add(header *tar.Header, content io.Reader) error {
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := u.inside(header.Name)
	if err != nil {
		return err
	}
	if name == "." {
		if header.Typeflag != tar.TypeDir {
			return refused(header.Name, "it would replace the directory")
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
	return refused(header.Name, "it is neither a file, nor a directory, nor a link")
}

// path returns the path of a name, for messages.
func (u *unpacker) path(name string) string { return path.Join(u.dir, name) }

// makeParent makes a directory for an entry unless it is there. A link on the way to it is refused, since what it leads to is not
// where the archive has the entry.
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
			return About("write", u.path(at), err)
		case info.Mode()&fs.ModeSymlink != 0:
			return refused(dir, "it lies behind the link "+u.path(at))
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
		return About("write", u.path(name), err)
	}
	info, err := u.root.Lstat(name)
	if err != nil {
		return About("write", u.path(name), err)
	}
	if !info.IsDir() {
		return fmt.Errorf("write %s: a file or a link with this name is in the way of the directory", u.path(name))
	}
	return nil
}

func (u *unpacker) addFile(name string, header *tar.Header, content io.Reader) error {
	return u.replace(name, func(part string) error {
		f, err := u.root.Create(part)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, io.LimitReader(content, header.Size)) // a File may use that the size is known
		if err == nil {
			err = f.Chmod(fs.FileMode(header.Mode & 0o777))
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		return u.root.Chtimes(part, time.Time{}, header.ModTime)
	})
}

// addSymlink makes a symbolic link, which must lead to somewhere in the archive.
func (u *unpacker) addSymlink(name string, header *tar.Header) error {
	within := name
	if u.rename != "" {
		within = strings.TrimPrefix(strings.TrimPrefix(name, u.rename), "/")
	}
	leads := path.Join(path.Dir(within), header.Linkname)
	if within == "" || header.Linkname == "" || path.IsAbs(header.Linkname) || leads == ".." || strings.HasPrefix(leads, "../") {
		return refused(header.Name, fmt.Sprintf("it is a link that leads outside, to %s", header.Linkname))
	}
	return u.replace(name, func(part string) error { return u.root.Symlink(header.Linkname, part) })
}

// addLink makes another name of a file of the archive.
func (u *unpacker) addLink(name string, header *tar.Header) error {
	old, err := u.inside(header.Linkname)
	if err != nil {
		return refused(header.Name, fmt.Sprintf("it is a link that leads outside, to %s", header.Linkname))
	}
	info, err := u.root.Lstat(old)
	if err != nil {
		return About("write", u.path(name), err)
	}
	if !info.Mode().IsRegular() {
		return refused(header.Name, fmt.Sprintf("it is a hard link to %s, which is not a file", header.Linkname))
	}
	return u.replace(name, func(part string) error { return u.root.Link(old, part) })
}

// replace makes a file under a temporary name beside its own, and gives it that when it is whole.
func (u *unpacker) replace(name string, fill func(part string) error) error {
	part := path.Join(path.Dir(name), ".switchyard-"+rand.Text()+".part")
	// It may also be there afterwards: renaming one name of a file to another name of it does nothing.
	defer func() { _ = u.root.Remove(part) }()
	if err := fill(part); err != nil {
		return About("write", u.path(name), err)
	}
	if err := u.root.Rename(part, name); err != nil {
		return About("write", u.path(name), err)
	}
	return nil
}

// finish gives the directories their modes and times, those below first.
func (u *unpacker) finish() error {
	for i := len(u.made) - 1; i >= 0; i-- {
		one := u.made[i]
		if err := u.root.Chtimes(one.name, time.Time{}, one.header.ModTime); err != nil {
			return About("write", u.path(one.name), err)
		}
		mode := fs.FileMode(one.header.Mode & 0o777)
		if one.header.Mode&0o1000 != 0 {
			mode |= fs.ModeSticky
		}
		if err := u.root.Chmod(one.name, mode); err != nil {
			return About("write", u.path(one.name), err)
		}
	}
	return nil
}
