package archive

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Unpack unpacks an archive that contains one file or folder. It calls skipped with each entry that it leaves out and
// the reason: links that lead outside, and anything that is not a file, folder or link. After an error, the entries
// before it remain complete, and no partial file remains.
func Unpack(r io.Reader, target Target, skipped func(name, why string)) error {
	in := tar.NewReader(r)
	first, err := in.Next()
	if errors.Is(err, io.EOF) {
		return errors.New("the archive is empty")
	} else if err != nil {
		return err
	}
	var top, inside string
	if flat := first.Typeflag == tar.TypeDir && path.Clean(first.Name) == "."; !flat {
		if top, inside, err = splitName(first.Name); err != nil {
			return err
		}
	} else if target.Name != "" {
		return errors.New("the archive has no top folder")
	}
	parent, err := os.OpenRoot(target.Dir)
	if err != nil {
		return err
	}
	defer parent.Close()
	u := &unpacker{in: in, root: parent, top: top, isNew: target.New, skipped: skipped}
	if inside == "" && first.Typeflag == tar.TypeReg {
		return u.single(first, target)
	}
	if inside != "" || first.Typeflag != tar.TypeDir {
		return fmt.Errorf("%s is neither a file nor a folder", top)
	}
	if target.Name != "" {
		if err := parent.Mkdir(target.Name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		// OpenRoot would follow a link.
		info, err := parent.Lstat(target.Name)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s exists but is not a folder", filepath.Join(target.Dir, target.Name))
		}
		if u.root, err = parent.OpenRoot(target.Name); err != nil {
			return err
		}
		defer u.root.Close()
		u.later = append(u.later, attributes{".", first.FileInfo().Mode(), first.ModTime})
	}
	return errors.Join(u.rest(), u.finish())
}

// splitName returns the first element of an entry's name, and the rest as a path of this system.
func splitName(name string) (top, inside string, err error) {
	clean := path.Clean(name)
	top, inside, _ = strings.Cut(clean, "/")
	if path.IsAbs(name) || top == "." || top == ".." || !filepath.IsLocal(filepath.FromSlash(clean)) {
		return "", "", fmt.Errorf("the archive contains %q, which would be outside the target folder", name)
	}
	return top, filepath.FromSlash(inside), nil
}

// inside returns the path of an entry below the top folder, or "" for the folder itself.
func (u *unpacker) inside(entry string) (string, error) {
	top, name, err := splitName(entry)
	switch {
	case err != nil:
		return "", err
	case u.top == "":
		return filepath.Join(top, name), nil
	case top != u.top:
		return "", fmt.Errorf("the archive of %s contains %q, which would be outside it", u.top, entry)
	}
	return name, nil
}

// unpacker unpacks the entries below one folder.
type unpacker struct {
	in      *tar.Reader
	root    *os.Root // the folder
	top     string   // its name in the archive; "" if entry names are already relative to it
	isNew   bool     // see Target.New
	skipped func(name, why string)
	// later holds folders whose attributes are set once their contents are complete.
	later []attributes
	// links holds the symbolic links that have been created.
	links []string
}

type attributes struct {
	name     string
	mode     fs.FileMode
	modified time.Time
}

// single unpacks an archive that contains one file.
func (u *unpacker) single(h *tar.Header, target Target) error {
	if target.Name == "" {
		return fmt.Errorf("%s is a file, not a folder", u.top)
	}
	if err := u.write(h, target.Name); err != nil {
		return err
	}
	next, err := u.in.Next()
	if errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return err
	}
	return fmt.Errorf("the archive of a single file also contains %q", next.Name)
}

// write writes the only file of an archive, which may go to an existing pipe or device.
func (u *unpacker) write(h *tar.Header, name string) error {
	info, err := u.root.Lstat(name)
	if err != nil || info.Mode()&(fs.ModeNamedPipe|fs.ModeDevice) == 0 {
		return u.file(h, name)
	}
	f, err := u.root.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, u.in)
	return errors.Join(err, f.Close())
}

// rest unpacks the entries that follow the folder itself.
func (u *unpacker) rest() error {
	for {
		h, err := u.in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		name, err := u.inside(h.Name)
		if err != nil {
			return err
		}
		if name == "" {
			continue // a repeated entry of the folder
		}
		if err := u.entry(h, name); err != nil {
			return err
		}
	}
}

func (u *unpacker) entry(h *tar.Header, name string) error {
	if dir := filepath.Dir(name); dir != "." {
		if err := u.root.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	if info, err := u.root.Lstat(name); u.isNew && err == nil && (h.Typeflag != tar.TypeDir || !info.IsDir()) {
		return fmt.Errorf("%s: %w", name, fs.ErrExist)
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return u.file(h, name)
	case tar.TypeDir:
		if err := u.root.Mkdir(name, 0o700|h.FileInfo().Mode().Perm()); err != nil {
			if info, found := u.root.Lstat(name); found != nil || !info.IsDir() {
				return err
			}
		}
		u.later = append(u.later, attributes{name, h.FileInfo().Mode(), h.ModTime})
		return nil
	case tar.TypeSymlink:
		return u.symlink(h, name)
	case tar.TypeLink:
		return u.hardLink(h, name)
	}
	u.skipped(h.Name, notCopied)
	return nil
}

// finish sets the attributes of folders, inner folders first.
func (u *unpacker) finish() error {
	err := u.dropStrayLinks()
	for i := len(u.later) - 1; i >= 0; i-- {
		a := u.later[i]
		if missing := 0o700 &^ a.mode.Perm(); missing != 0 {
			err = errors.Join(err, u.root.Chmod(a.name, a.mode.Perm()))
		}
		err = errors.Join(err, u.root.Chtimes(a.name, a.modified, a.modified))
	}
	return err
}
