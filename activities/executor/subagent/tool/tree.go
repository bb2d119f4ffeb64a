package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"switchyard/activities/executor/container"
)

// Tree is the work directory of an agent, which its tools share. Only one call at a time works on it, so that no
// command can replace a file while the worker opens it.
type Tree struct {
	workspace string
	turn      chan struct{}
}

// NewTree creates the work directory of a workspace unless it exists.
func NewTree(workspaceDir string) (*Tree, error) {
	t := &Tree{workspace: workspaceDir, turn: make(chan struct{}, 1)}
	root, err := t.open()
	if err != nil {
		return nil, err
	}
	return t, root.Close()
}

// Path returns the path of the work directory. The agent may have put anything in its place.
func (t *Tree) Path() string { return filepath.Join(t.workspace, WorkDir) }

// acquire waits for earlier calls to end. The caller must call release when its own call has ended.
func (t *Tree) acquire(ctx context.Context) (release func(), err error) {
	select {
	case t.turn <- struct{}{}:
		return func() { <-t.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// errNoDirectory reports that a path is not a directory, or that the directory was replaced in the meantime.
var errNoDirectory = errors.New("not a directory, or replaced in the meantime")

// open opens the work directory. If the agent has removed or replaced it, open creates a new one.
func (t *Tree) open() (*os.Root, error) {
	workspace, err := os.OpenRoot(t.workspace)
	if err != nil {
		return nil, fmt.Errorf("open the workspace: %w", err)
	}
	defer workspace.Close()
	if err := makeWorkDir(workspace, WorkDir); err != nil {
		return nil, fmt.Errorf("make the work directory: %w", err)
	}
	return openDir(workspace, WorkDir)
}

// makeWorkDir creates a directory, in place of anything else with that name.
func makeWorkDir(parent *os.Root, name string) error {
	if info, err := parent.Lstat(name); err == nil && !info.IsDir() {
		if err := parent.Remove(name); err != nil {
			return err
		}
	}
	if err := parent.Mkdir(name, dirMode); errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	owner, err := ownerOf(parent)
	if err != nil {
		return err
	}
	return errors.Join(parent.Chmod(name, dirMode), owner.giveDir(parent, name))
}

// owner returns the owner for files that the worker creates in the work directory.
func (t *Tree) owner() (owner, error) {
	workspace, err := os.OpenRoot(t.workspace)
	if err != nil {
		return owner{}, fmt.Errorf("open the workspace: %w", err)
	}
	defer workspace.Close()
	return ownerOf(workspace)
}

// adopt gives the sandbox user the files that the worker created in the work directory before that user was known.
func (t *Tree) adopt() error {
	owner, err := t.owner()
	if err != nil || !owner.differs {
		return err
	}
	root, err := t.open()
	if err != nil {
		return err
	}
	defer root.Close()
	return walk(root, func(e entry) error { return ignoreGone(owner.giveDir(e.dir, e.info.Name())) })
}

// Modes of files that the worker creates. The workspace is inside a directory that no other user can enter.
const (
	fileMode fs.FileMode = 0o666
	dirMode  fs.FileMode = 0o777
)

// openDir opens a directory that is not a link.
func openDir(parent *os.Root, name string) (*os.Root, error) {
	before, err := parent.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.IsDir() {
		return nil, errNoDirectory
	}
	root, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	after, err := root.Stat(".")
	if err == nil && !os.SameFile(before, after) {
		err = errNoDirectory
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

// walkPath calls visit for everything in the directory at a path, like walk. A directory that the agent has removed or
// replaced counts as empty.
func walkPath(dir string, visit func(entry) error) error {
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer parent.Close()
	root, err := openDir(parent, filepath.Base(dir))
	if errors.Is(err, errNoDirectory) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	return walk(root, visit)
}

// relative returns a path from the model relative to the work directory. The model may also use the absolute path that
// its commands see.
func (t *Tree) relative(name string) (string, error) {
	clean := path.Clean(filepath.ToSlash(name))
	for _, dir := range []string{filepath.ToSlash(t.Path()), path.Join(container.WorkspaceDir, WorkDir)} {
		if rest, ok := strings.CutPrefix(clean, dir); ok && (rest == "" || rest[0] == '/') {
			clean = path.Clean("./" + rest)
			break
		}
	}
	switch {
	case strings.ContainsRune(name, 0):
		return "", errors.New("a path cannot hold a NUL character")
	case !filepath.IsLocal(clean):
		return "", fmt.Errorf("%s is outside of the work directory; give a path relative to it", name)
	}
	return clean, nil
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
