package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"google.golang.org/protobuf/types/known/structpb"
)

// Names of the files in a workspace.
const (
	inputFile         = "input.json"
	outputFile        = "output"
	contextUpdateFile = "context-update"
	checkpointFile    = "checkpoint"
	tempName          = "tmp"
)

// Limits on what a task may hand back, in bytes.
const (
	// MaxOutput bounds the file SWITCHYARD_OUTPUT.
	MaxOutput = 8 << 20
	// MaxContextUpdate bounds the file SWITCHYARD_CONTEXT_UPDATE.
	MaxContextUpdate = 32 << 10
	// MaxCheckpoint bounds the file SWITCHYARD_CHECKPOINT.
	MaxCheckpoint = 8 << 20
)

// Request says whose workspace it is and what the task is given.
type Request struct {
	// RunID, Workflow and Task name the task; TaskID is unique among all runs.
	RunID, Workflow, Task, TaskID string
	// Attempt counts from 0.
	Attempt int
	// Node is the node's name.
	Node string
	// Index and Count distinguish an instance of a fanned-out task from its siblings;
	// a task that is none has 0 and 0, and sees that it is the first of 1.
	Index, Count int
	// Item is what a `foreach` gives the instance; nil: none.
	Item *structpb.Value
	// NUMANode is the NUMA node that the task is pinned to; nil: none.
	NUMANode *int
	// SharedDir is a directory that all nodes see; empty: there is none.
	SharedDir string
	// Env are the task's own variables.
	Env map[string]string
	// Input is what the task shares with its siblings of the file SWITCHYARD_INPUT;
	// nil: nothing.
	Input *Input
	// Checkpoint is what an earlier attempt has left in the file
	// SWITCHYARD_CHECKPOINT; nil: nothing, and there is no such file at first.
	Checkpoint []byte
}

// Root is the folder that workspaces lie in. It keeps the directories of
// attempts that left nothing behind and gives them to later ones, because on
// most file systems making and removing them costs more than a short task. It is
// safe for concurrent use.
type Root struct {
	dir string
	// tempDir is where the temporary directories of attempts lie, each under the name of its workspace; empty: in their
	// workspaces.
	tempDir string

	mu   sync.Mutex
	free []*directory
}

// maxFree bounds the directories that a Root keeps.
const maxFree = 64

// directory is what of a workspace outlives an attempt.
type directory struct {
	path  string
	temp  string      // the attempt's temporary directory
	input os.FileInfo // the input file as it was made
}

// NewRoot returns the root of workspaces below dir. Their temporary directories lie below tempDir, which belongs to this
// root alone, or in the workspaces if it is empty. Both are made when the first workspace needs them.
func NewRoot(dir, tempDir string) *Root { return &Root{dir: dir, tempDir: tempDir} }

// Workspace is the directory of one attempt, or of the instances of a batch one
// after the other. Its methods are called by one goroutine at a time.
type Workspace struct {
	root    *Root
	dir     *directory
	request Request
	closed  bool
}

// Prepare makes a workspace.
func (root *Root) Prepare(r Request) (*Workspace, error) {
	w := &Workspace{root: root}
	if err := w.Next(r); err != nil {
		w.closed = w.dir == nil
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// Next makes the workspace that of another instance: what the one before left is
// gone, and nothing of that one runs any more. After an error the workspace is of
// no use but to be closed.
func (w *Workspace) Next(r Request) error {
	input, err := r.Input.instance(r)
	if err != nil {
		return fmt.Errorf("input of %s: %w", r.Task, err)
	}
	w.request = r
	if w.dir != nil && !w.cleared() {
		old := w.dir
		w.dir = nil
		if err := old.remove(); err != nil {
			return err
		}
	}
	if w.dir == nil {
		if w.dir, err = w.root.take(); err != nil {
			return fmt.Errorf("make workspace: %w", err)
		}
	}
	if err = w.dir.write(input); err == nil && r.Checkpoint != nil {
		err = os.WriteFile(w.path(checkpointFile), r.Checkpoint, 0o600)
	}
	if err != nil {
		return fmt.Errorf("make workspace: %w", err)
	}
	return nil
}

// take returns a directory that is free, or a new one.
func (root *Root) take() (*directory, error) {
	root.mu.Lock()
	if last := len(root.free) - 1; last >= 0 {
		d := root.free[last]
		root.free = root.free[:last]
		root.mu.Unlock()
		return d, nil
	}
	root.mu.Unlock()
	path, err := os.MkdirTemp(root.dir, "attempt-")
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(root.dir, 0o700); err != nil {
			return nil, err
		}
		path, err = os.MkdirTemp(root.dir, "attempt-")
	}
	if err != nil {
		return nil, err
	}
	d, err := root.directory(filepath.Base(path))
	if err != nil {
		return nil, err
	}
	err = os.Mkdir(d.temp, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.MkdirAll(d.temp, 0o700)
	}
	return d, err
}

// directory returns the directory of a name.
func (root *Root) directory(name string) (*directory, error) {
	// A task may change its directory before it uses the paths.
	path, err := filepath.Abs(filepath.Join(root.dir, name))
	if err != nil || root.tempDir == "" {
		return &directory{path: path, temp: filepath.Join(path, tempName)}, err
	}
	temp, err := filepath.Abs(filepath.Join(root.tempDir, name))
	return &directory{path: path, temp: temp}, err
}

// remove removes the directory and its temporary directory with all that is in them.
func (d *directory) remove() error {
	if filepath.Dir(d.temp) == d.path {
		return remove(d.path)
	}
	return errors.Join(remove(d.path), remove(d.temp))
}

// write writes the input file. A file that is there is written over and then cut
// rather than emptied first: ext4 flushes a file that was emptied when it is closed.
func (d *directory) write(input []byte) (err error) {
	f, err := os.OpenFile(filepath.Join(d.path, inputFile), os.O_WRONLY|os.O_CREATE|openFlags, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(input); err != nil {
		return err
	}
	if d.input, err = f.Stat(); err == nil && d.input.Size() > int64(len(input)) {
		err = f.Truncate(int64(len(input)))
	}
	return err
}

// Close removes the directories that are free. Workspaces must have been closed.
func (root *Root) Close() error {
	root.mu.Lock()
	defer root.mu.Unlock()
	var errs []error
	for _, d := range root.free {
		errs = append(errs, d.remove())
	}
	root.free = nil
	return errors.Join(errs...)
}

// Dir is the workspace's directory, an absolute path.
func (w *Workspace) Dir() string { return w.dir.path }

// TempDir is the attempt's temporary directory, an absolute path, in Dir or elsewhere.
func (w *Workspace) TempDir() string { return w.dir.temp }

func (w *Workspace) path(name string) string { return filepath.Join(w.dir.path, name) }

// Output reads what the task wrote to SWITCHYARD_OUTPUT; without such a file,
// or with an empty one, it is empty, but not nil. What cannot be used is a *ContentError,
// which quotes the text as mask returns it.
func (w *Workspace) Output(mask func([]byte) []byte) (*structpb.Struct, error) {
	return read(w.path(outputFile), "SWITCHYARD_OUTPUT", MaxOutput, mask)
}

// ContextUpdate reads what the task wrote to SWITCHYARD_CONTEXT_UPDATE, as Output does.
func (w *Workspace) ContextUpdate(mask func([]byte) []byte) (*structpb.Struct, error) {
	return read(w.path(contextUpdateFile), "SWITCHYARD_CONTEXT_UPDATE", MaxContextUpdate, mask)
}

// Close ends the use of the workspace: what the attempt left in it is gone, also
// what it has made read-only. Nothing of the attempt runs any more. A second
// Close does nothing.
func (w *Workspace) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	if w.dir == nil {
		return nil
	}
	if !w.cleared() {
		return w.dir.remove()
	}
	w.root.mu.Lock()
	defer w.root.mu.Unlock()
	if len(w.root.free) == maxFree {
		return w.dir.remove()
	}
	w.root.free = append(w.root.free, w.dir)
	return nil
}

// cleared takes away the files that a task may write and reports whether the directory
// is then as it was made, so that the next attempt can have it: nothing more in it,
// nothing replaced, no other way to it.
func (w *Workspace) cleared() bool {
	entries, err := os.ReadDir(w.dir.path)
	if err != nil {
		return false
	}
	for _, entry := range entries {
		switch name := entry.Name(); name {
		case inputFile:
		case tempName:
			if w.path(name) != w.dir.temp {
				return false
			}
		case outputFile, contextUpdateFile, checkpointFile:
			if os.Remove(w.path(name)) != nil {
				return false
			}
		default:
			return false
		}
	}
	input, err := os.Lstat(w.path(inputFile))
	if err != nil || !os.SameFile(input, w.dir.input) || !untouched(input, 0o600) {
		return false
	}
	for _, path := range []string{w.dir.path, w.dir.temp} {
		if info, err := os.Lstat(path); err != nil || !info.IsDir() || !untouched(info, 0o700) {
			return false
		}
	}
	left, err := os.ReadDir(w.dir.temp)
	return err == nil && len(left) == 0
}

// remove removes a directory with all that is in it.
func remove(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	// Only a user who may write to a directory can remove what is in it, and no user can remove
	// what is immutable.
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			changeable(path, d.Type())
		}
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove workspace: %w", err)
	}
	return nil
}
