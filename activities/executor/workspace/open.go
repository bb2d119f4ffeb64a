package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Open returns the workspace that Prepare has made under a name, which is the last
// element of its Dir, in an earlier process. Its attempt goes on to use it. Its Env lacks
// what only the request could tell.
func (root *Root) Open(name string) (*Workspace, error) {
	path, err := filepath.Abs(filepath.Join(root.dir, filepath.Base(name)))
	if err != nil {
		return nil, err
	}
	if info, err := os.Lstat(path); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("open workspace %s: %w", path, errors.Join(err, fs.ErrNotExist))
	}
	return &Workspace{root: root, dir: &directory{path: path}}, nil
}

// Sweep removes what earlier processes have left below the root, but for the workspaces
// of those names. Nothing of it is in use, and none has been prepared yet.
func (root *Root) Sweep(except []string) error {
	entries, err := os.ReadDir(root.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, entry := range entries {
		if !slices.Contains(except, entry.Name()) {
			errs = append(errs, remove(filepath.Join(root.dir, entry.Name())))
		}
	}
	return errors.Join(errs...)
}
