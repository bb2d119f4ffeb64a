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

// Open returns a workspace that an earlier process prepared, by its name, which is the last element of its Dir. The
// root of that process may have kept temporary directories elsewhere: tempDir is the TempDir of that time, or empty if
// it is below this root. The attempt continues to use the workspace. Its Env lacks the variables that only the request
// holds.
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

// Sweep removes what earlier processes left below the root, except the workspaces named in except. The caller must not
// have prepared a workspace yet, and nothing that Sweep removes may be in use.
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
			errs = append(errs, Remove(filepath.Join(dir, entry.Name())))
		}
	}
	return errors.Join(errs...)
}
