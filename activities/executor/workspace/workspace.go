package workspace

import (
	"encoding/json"
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
	tempDir           = "tmp"
)

// Limits on what a task may hand back, in bytes.
const (
	// MaxOutput bounds the file SWITCHYARD_OUTPUT.
	MaxOutput = 8 << 20
	// MaxContextUpdate bounds the file SWITCHYARD_CONTEXT_UPDATE.
	MaxContextUpdate = 32 << 10
)

// Request says whose workspace it is and what the task is given.
type Request struct {
	// RunID, Workflow and Task name the task; TaskID is unique among all runs.
	RunID, Workflow, Task, TaskID string
	// Attempt counts from 0.
	Attempt int
	// Node is the node's name.
	Node string
	// Index and Count tell an instance of a fanned-out task from its siblings;
	// a task that is none has 0 and 1. Count 0 is taken for 1.
	Index, Count int
	// Item is what a `foreach` gives the instance; nil: none.
	Item *string
	// NUMANode is the NUMA node that the task is pinned to; nil: none.
	NUMANode *int
	// SharedDir is a directory that all nodes see; empty: there is none.
	SharedDir string
	// Env are the task's own variables.
	Env map[string]string
	// Input is the task's own input.
	Input *structpb.Struct
	// Parents are the outputs of the parents, by task name.
	Parents map[string]*structpb.Struct
}

// Root is the folder that workspaces lie in. It keeps the directories of
// attempts that left nothing behind and gives them to later ones, because on
// most file systems making and removing them costs more than a short task. It is
// safe for concurrent use.
type Root struct {
	dir string

	mu   sync.Mutex
	free []*directory
}

// maxFree bounds the directories that a Root keeps.
const maxFree = 64

// directory is what of a workspace outlives an attempt.
type directory struct {
	path  string
	input os.FileInfo // the input file as it was made
}

// NewRoot returns the root of workspaces below dir, which is made when the first
// workspace needs it.
func NewRoot(dir string) *Root { return &Root{dir: dir} }

// Workspace is the directory of one attempt. Its methods are called by one
// goroutine at a time.
type Workspace struct {
	root    *Root
	dir     *directory
	request Request
	closed  bool
}

// Prepare makes a workspace.
func (root *Root) Prepare(r Request) (*Workspace, error) {
	input, err := inputJSON(r)
	if err != nil {
		return nil, fmt.Errorf("input of %s: %w", r.Task, err)
	}
	w := &Workspace{root: root, request: r}
	if w.dir, err = root.take(); err != nil {
		return nil, fmt.Errorf("make workspace: %w", err)
	}
	if err = w.dir.write(input); err != nil {
		return nil, errors.Join(fmt.Errorf("make workspace: %w", err), w.remove())
	}
	return w, nil
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
	// A task may change its directory before it uses the paths.
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	return &directory{path: path}, os.Mkdir(filepath.Join(path, tempDir), 0o700)
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
		errs = append(errs, os.RemoveAll(d.path))
	}
	root.free = nil
	return errors.Join(errs...)
}

// Dir is the workspace's directory, an absolute path.
func (w *Workspace) Dir() string { return w.dir.path }

func (w *Workspace) path(name string) string { return filepath.Join(w.dir.path, name) }

// inputJSON is the task's input at the top level, and beside it each parent's
// output under the parent's name. The task's own key wins a clash: its author
// wrote it, while a parent's name can change.
func inputJSON(r Request) ([]byte, error) {
	if len(r.Input.GetFields()) == 0 && len(r.Parents) == 0 {
		return []byte("{}\n"), nil
	}
	merged := make(map[string]any, len(r.Parents)+len(r.Input.GetFields()))
	for name, output := range r.Parents {
		merged[name] = output.AsMap()
	}
	for key, value := range r.Input.GetFields() {
		merged[key] = value.AsInterface()
	}
	text, err := json.Marshal(merged)
	if err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}

// Output reads what the task wrote to SWITCHYARD_OUTPUT; without such a file,
// or with an empty one, it is empty, but not nil. What cannot be used is a *ContentError.
func (w *Workspace) Output() (*structpb.Struct, error) {
	return read(w.path(outputFile), "SWITCHYARD_OUTPUT", MaxOutput)
}

// ContextUpdate reads what the task wrote to SWITCHYARD_CONTEXT_UPDATE, as Output does.
func (w *Workspace) ContextUpdate() (*structpb.Struct, error) {
	return read(w.path(contextUpdateFile), "SWITCHYARD_CONTEXT_UPDATE", MaxContextUpdate)
}

// Close ends the use of the workspace: what the attempt left in it is gone, also
// what it has made read-only. Nothing of the attempt runs any more. A second
// Close does nothing.
func (w *Workspace) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	for _, name := range []string{outputFile, contextUpdateFile, checkpointFile} {
		_ = os.Remove(w.path(name)) // most are not there; one that stays is found below
	}
	if !w.pristine() {
		return w.remove()
	}
	w.root.mu.Lock()
	defer w.root.mu.Unlock()
	if len(w.root.free) == maxFree {
		return os.RemoveAll(w.dir.path)
	}
	w.root.free = append(w.root.free, w.dir)
	return nil
}

// pristine says whether the directory is as it was made, so that the next
// attempt can have it: nothing more in it, nothing replaced, no other way to it.
func (w *Workspace) pristine() bool {
	entries, err := os.ReadDir(w.dir.path)
	if err != nil || len(entries) != 2 {
		return false
	}
	input, err := os.Lstat(w.path(inputFile))
	if err != nil || !os.SameFile(input, w.dir.input) || !untouched(input, 0o600) {
		return false
	}
	for _, path := range []string{w.dir.path, w.path(tempDir)} {
		if info, err := os.Lstat(path); err != nil || !info.IsDir() || !untouched(info, 0o700) {
			return false
		}
	}
	left, err := os.ReadDir(w.path(tempDir))
	return err == nil && len(left) == 0
}

func (w *Workspace) remove() error {
	if os.RemoveAll(w.dir.path) == nil {
		return nil
	}
	// What is in a directory can be removed only by who may write to it.
	_ = filepath.WalkDir(w.dir.path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	if err := os.RemoveAll(w.dir.path); err != nil {
		return fmt.Errorf("remove workspace: %w", err)
	}
	return nil
}
