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
)

// Pack writes a file, or a folder with all below it, to an archive, with top as the name of it; "" for a folder: only what is
// in it. Links stay links. It calls skipped with what it leaves out and why: links that lead out of the folder, and what is
// neither file, folder nor link, such as a socket.
func Pack(w io.Writer, source, top string, skipped func(path, why string)) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	p := packer{out: tar.NewWriter(w), skipped: skipped}
	if info.IsDir() {
		err = p.folder(source, top)
	} else if top == "" {
		err = fmt.Errorf("%s is not a folder", source)
	} else {
		err = p.add(source, top, info)
	}
	return errors.Join(err, p.out.Close())
}

// notCopied is why something is left out that is of another kind.
const notCopied = "it is neither a file, a folder nor a link"

// leadsOutside is why a link is left out.
func leadsOutside(target string) string {
	return fmt.Sprintf("it is a link to %s, outside of what is copied", target)
}

type packer struct {
	out     *tar.Writer
	skipped func(path, why string)
}

// folder adds a folder and what is below it. A top that is a link is followed.
func (p packer) folder(source, top string) error {
	source, err := filepath.EvalSymlinks(source)
	if err != nil {
		return err
	}
	return filepath.WalkDir(source, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(source, at)
		if err != nil {
			return err
		}
		name := path.Join(top, filepath.ToSlash(inside))
		if name == "." {
			return nil // of the folder only what is in it
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed since its folder was read
		} else if err != nil {
			return err
		}
		if target, err := os.Readlink(at); err == nil && (filepath.IsAbs(target) || !filepath.IsLocal(filepath.Join(filepath.Dir(inside), target))) {
			p.skipped(at, leadsOutside(target))
			return nil
		}
		return p.add(at, name, info)
	})
}

// add adds one file, folder or link. A link of the top is followed by Stat before.
func (p packer) add(at, name string, info fs.FileInfo) error {
	target := ""
	switch {
	case info.Mode().IsRegular() || info.IsDir():
	case info.Mode()&fs.ModeSymlink != 0:
		var err error
		if target, err = os.Readlink(at); err != nil {
			return err
		}
	default:
		p.skipped(at, notCopied)
		return nil
	}
	if info.Mode().IsRegular() {
		return p.file(at, name)
	}
	return p.header(info, name, target)
}

func (p packer) header(info fs.FileInfo, name, target string) error {
	h, err := tar.FileInfoHeader(info, filepath.ToSlash(target))
	if err != nil {
		return err
	}
	// Users of this machine mean nothing elsewhere.
	h.Uid, h.Gid, h.Uname, h.Gname, h.Format = 0, 0, "", "", tar.FormatPAX
	if h.Name = name; info.IsDir() {
		h.Name += "/"
	}
	return p.out.WriteHeader(h)
}

// file adds a file with the size that it has when it is opened. One that has become shorter since is an error; what is
// appended to it, as to a log, is left out.
func (p packer) file(at, name string) error {
	f, err := os.Open(at)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		p.skipped(at, notCopied)
		return nil
	}
	if err := p.header(info, name, ""); err != nil {
		return err
	}
	n, err := io.CopyN(p.out, f, info.Size())
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s has become shorter while it was read: %d of %d bytes", at, n, info.Size())
	}
	return err
}
