package tool

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// unsetTime replaces times that are not restored.
var unsetTime = time.Unix(0, 0)

// Unpack restores a directory to the state in which Pack packed it, and removes its current content. Whatever the
// archive contains, nothing outside of the directory is touched. Restored files belong to the sandbox user if the
// workspace already belongs to one. Otherwise every user may write them, but the workspace's parent directory keeps
// other users out.
func Unpack(dir string, data []byte) error {
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer parent.Close()
	owner, err := ownerOf(parent)
	if err != nil {
		return err
	}
	if err := makeWorkDir(parent, filepath.Base(dir)); err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	root, err := openDir(parent, filepath.Base(dir))
	if err != nil {
		return err
	}
	defer root.Close()
	if err := empty(root); err != nil {
		return fmt.Errorf("empty %s: %w", dir, err)
	}
	decompressed, err := zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(archiveWindow), zstd.WithDecoderLowmem(true))
	if err != nil {
		return fmt.Errorf("read the archive: %w", err)
	}
	defer decompressed.Close()
	u := &unpacker{root: root, owner: owner}
	if err := u.all(tar.NewReader(io.LimitReader(decompressed, maxStream))); err != nil {
		return fmt.Errorf("read the archive: %w", err)
	}
	return nil
}

// maxStream bounds a decompressed archive, including its headers.
const maxStream = maxContent + maxEntries*4096

// empty removes everything in a directory.
func empty(root *os.Root) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	errs := []error{err}
	for _, e := range entries {
		errs = append(errs, root.RemoveAll(e.Name()))
	}
	return errors.Join(errs...)
}

// unpacker restores files.
type unpacker struct {
	root  *os.Root
	owner owner
	count int
	// dirs get their permissions last, because they may lock the worker out.
	dirs []*tar.Header
}

func (u *unpacker) all(archive *tar.Reader) error {
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if u.count++; u.count > maxEntries {
			return &TooLargeError{What: fmt.Sprintf("it holds more than %d files", maxEntries)}
		}
		header.Name = strings.TrimSuffix(header.Name, "/")
		if !filepath.IsLocal(header.Name) || path.Clean(header.Name) != header.Name || header.Name == "." || strings.Count(header.Name, "/") > maxDepth {
			return fmt.Errorf("%q is not a path inside the work directory", header.Name)
		}
		if err := u.add(header, archive); err != nil {
			return fmt.Errorf("restore %q: %w", header.Name, err)
		}
	}
	for _, dir := range slices.Backward(u.dirs) {
		if err := u.root.Chmod(dir.Name, u.mode(dir, dirMode)); err != nil {
			return err
		}
	}
	return nil
}

// mode returns the permissions for a file. If its owner does not change, the permissions in open are added for the user
// of a container.
func (u *unpacker) mode(header *tar.Header, open fs.FileMode) fs.FileMode {
	mode := fs.FileMode(header.Mode) & fs.ModePerm
	if !u.owner.differs {
		mode |= open
	}
	return mode
}

func (u *unpacker) add(header *tar.Header, content io.Reader) error {
	switch header.Typeflag {
	case tar.TypeDir:
		u.dirs = append(u.dirs, header)
		return errors.Join(u.root.Mkdir(header.Name, 0o700), u.owner.giveDir(u.root, header.Name))
	case tar.TypeSymlink:
		return errors.Join(u.root.Symlink(header.Linkname, header.Name), u.owner.giveDir(u.root, header.Name))
	case tar.TypeReg:
		return u.addFile(header, content)
	}
	return fmt.Errorf("unknown entry type %q", header.Typeflag)
}

func (u *unpacker) addFile(header *tar.Header, content io.Reader) (err error) {
	f, err := u.root.OpenFile(header.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|openFlags, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.Copy(f, content); err != nil {
		return err
	}
	if err := errors.Join(u.owner.giveFile(f), f.Chmod(u.mode(header, fileMode))); err != nil {
		return err
	}
	return u.root.Chtimes(header.Name, header.ModTime, header.ModTime)
}
