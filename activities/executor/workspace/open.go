package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Open returns the workspace that Prepare has made under a name, which is the last
// element of its Dir, in an earlier process, whose root may have had its temporary directories elsewhere: tempDir is the
// TempDir of then, or empty if it is that of the root. The attempt continues to use the workspace. Its Env lacks what only
// the request could name.
func (root *Root) Open(name, tempDir string) (*Workspace, error) {
	d, err := root.directory(filepath.Base(name))
	if err != nil {
		return nil, err
	}
	if info, err := os.Lstat(d.path); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("open workspace %s: %w", d.path, errors.Join(err, fs.ErrNotExist))
	}
	d.temp = cmp.Or(tempDir, d.temp)
	return &Workspace{root: root, dir: d}, nil
}

// Sweep removes what earlier processes have left below the root, but for the workspaces
// of those names. Nothing of it is in use, and none has been prepared yet.
func (root *Root) Sweep(except []string) error {
	errs := []error{sweep(root.dir, except)}
	if root.tempDir != "" {
		errs = append(errs, sweep(root.tempDir, except))
	}
	return errors.Join(errs...)
}

func sweep(dir string, except []string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, entry := range entries {
		if !slices.Contains(except, entry.Name()) {
			errs = append(errs, remove(filepath.Join(dir, entry.Name())))
		}
	}
	return errors.Join(errs...)
}
