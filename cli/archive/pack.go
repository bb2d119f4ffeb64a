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

// Pack writes a file, or a folder with everything below it, to an archive under the name top. An empty top writes only
// the contents of a folder. Links stay links. Pack calls skipped with each path that it leaves out and the reason:
// links that lead out of the folder, and anything that is not a file, folder or link, such as a socket.
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

// notCopied is the reason for skipping an entry of another kind.
const notCopied = "it is not a file, folder or link"

// leadsOutside returns the reason for skipping a link.
func leadsOutside(target string) string {
	return fmt.Sprintf("it is a link to %s, which is outside what is copied", target)
}

type packer struct {
	out     *tar.Writer
	skipped func(path, why string)
}

// folder adds a folder and its contents. It follows the link if the top itself is one.
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
			return nil // the folder itself is left out, only its contents are added
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed after its folder was read
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

// add adds one file, folder or link. Stat has already followed a link at the top.
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
	// The users of this machine mean nothing on another one.
	h.Uid, h.Gid, h.Uname, h.Gname, h.Format = 0, 0, "", "", tar.FormatPAX
	if h.Name = name; info.IsDir() {
		h.Name += "/"
	}
	return p.out.WriteHeader(h)
}

// file adds a file with the size that it has when it is opened. A file that shrinks after that is an error; data
// appended after that, as to a log, is left out.
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
		return fmt.Errorf("%s was truncated while it was being read: got %d of %d bytes", at, n, info.Size())
	}
	return err
}
