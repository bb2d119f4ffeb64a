package archive

import (
	"archive/tar"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// temporaryPrefix is the prefix of the names of incomplete files.
const temporaryPrefix = ".switchyard-"

// file unpacks a file under a temporary name and renames it when it is complete. The umask applies, and setuid bits are
// dropped.
func (u *unpacker) file(h *tar.Header, name string) (err error) {
	temporary := filepath.Join(filepath.Dir(name), temporaryPrefix+rand.Text())
	f, err := u.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, h.FileInfo().Mode().Perm())
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, u.root.Remove(temporary))
		}
	}()
	_, err = io.Copy(f, u.in)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = u.root.Chtimes(temporary, h.ModTime, h.ModTime)
	}
	if err == nil {
		err = u.root.Rename(temporary, name)
	}
	return err
}

// symlink creates a symbolic link if its target is inside the folder.
func (u *unpacker) symlink(h *tar.Header, name string) error {
	target := filepath.FromSlash(h.Linkname)
	if path.IsAbs(h.Linkname) || !filepath.IsLocal(filepath.Join(filepath.Dir(name), target)) {
		u.skipped(h.Name, leadsOutside(h.Linkname))
		return nil
	}
	temporary := filepath.Join(filepath.Dir(name), temporaryPrefix+rand.Text())
	if err := u.root.Symlink(target, temporary); err != nil {
		return err
	}
	if err := u.root.Rename(temporary, name); err != nil {
		return errors.Join(err, u.root.Remove(temporary))
	}
	u.links = append(u.links, name)
	return nil
}

// dropStrayLinks removes links that lead outside through other links.
func (u *unpacker) dropStrayLinks() error {
	var err error
	for _, name := range u.links {
		_, found := u.root.Stat(name)
		if found == nil || errors.Is(found, fs.ErrNotExist) || errors.Is(found, fs.ErrPermission) {
			continue
		}
		u.skipped(path.Join(u.top, filepath.ToSlash(name)), "it is a link that is broken or leads outside what is copied")
		err = errors.Join(err, u.root.Remove(name))
	}
	return err
}

// hardLink creates a hard link to an earlier file of the archive.
func (u *unpacker) hardLink(h *tar.Header, name string) error {
	of, err := u.inside(h.Linkname)
	if err != nil || of == "" {
		return fmt.Errorf("the archive contains %q, a link to %s outside it", h.Name, h.Linkname)
	}
	info, err := u.root.Lstat(of)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("the archive contains %q, a link to %s, which is not a file", h.Name, h.Linkname)
	}
	if err := u.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return u.root.Link(of, name)
}
