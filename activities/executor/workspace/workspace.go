package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/workflows/interpreter"
)

// Names of the files in a workspace.
const (
	inputFile         = "input.json"
	outputFile        = "output"
	contextUpdateFile = "context-update"
	checkpointFile    = "checkpoint"
	tempName          = "tmp"
	filesName         = "work" // also where the tools of an agent work
)

// Limits on what a task may return, in bytes.
const (
	// MaxOutput bounds the file SWITCHYARD_OUTPUT.
	MaxOutput = 8 << 20
	// MaxContextUpdate bounds the file SWITCHYARD_CONTEXT_UPDATE.
	MaxContextUpdate = 32 << 10
	// MaxCheckpoint bounds the file SWITCHYARD_CHECKPOINT.
	MaxCheckpoint = 8 << 20
)

// Request names the task of a workspace and holds what the task is given.
type Request struct {
	// RunID, Workflow and Task name the task; TaskID is unique among all runs.
	RunID, Workflow, Task, TaskID string
	// Attempt counts from 0.
	Attempt int
	// Node is the node's name.
	Node string
	// Index and Count identify an instance of a fanned-out task among its siblings. Both are 0 for a task that is not
	// fanned out, which sees itself as the first of 1.
	Index, Count int
	// Item is the `foreach` item of the instance, or nil.
	Item *structpb.Value
	// NUMANode is the NUMA node that the task is pinned to, or nil.
	NUMANode *int
	// Gang is what the task knows of the gang that it is a member of, or nil.
	Gang *Gang
	// SharedDir is a directory that all nodes see, or empty if there is none.
	SharedDir string
	// Env holds the task's own variables.
	Env map[string]string
	// Input is the part of the file SWITCHYARD_INPUT that the task shares with its siblings, or nil.
	Input *Input
	// Checkpoint is the content of SWITCHYARD_CHECKPOINT that an earlier attempt left. If it is nil, the attempt starts
	// without the file.
	Checkpoint []byte
}

// Gang is what the members of a gang know of each other. The rank of a member is its Request.Index.
type Gang struct {
	// Hosts are the addresses of the nodes of the members, by rank.
	Hosts []string
	// MasterPort is a TCP port that was free on the node of rank 0.
	MasterPort int
}

// Root is the folder that holds the workspaces. It keeps the directories of attempts that left nothing behind and
// reuses them, because creating and removing directories costs more than a short task on most file systems. It is safe
// for concurrent use.
type Root struct {
	dir string
	// tempDir holds the temporary directories of attempts, each under the name of its workspace. If it is empty, they
	// are inside the workspaces.
	tempDir string

	mu   sync.Mutex
	free []*directory
}

// maxFree bounds the directories that a Root keeps.
const maxFree = 64

// directory is the part of a workspace that outlives an attempt.
type directory struct {
	path  string
	temp  string      // the attempt's temporary directory
	input os.FileInfo // the input file as it was written
}

// NewRoot returns the root of workspaces below dir. Their temporary directories are below tempDir, which belongs to
// this root alone, or inside the workspaces if tempDir is empty. Both folders are created when the first workspace
// needs them.
func NewRoot(dir, tempDir string) *Root { return &Root{dir: dir, tempDir: tempDir} }

// Workspace is the directory of one attempt, or of the instances of a batch in turn. Only one goroutine at a time may
// call its methods.
type Workspace struct {
	root    *Root
	dir     *directory
	request Request
	closed  bool
}

// Prepare creates a workspace, or reuses the directory of an earlier one.
func (root *Root) Prepare(r Request) (*Workspace, error) {
	w := &Workspace{root: root}
	if err := w.Next(r); err != nil {
		w.closed = w.dir == nil
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// Next turns the workspace into that of another instance and removes what the previous instance left. No process of the
// previous instance may still run. After an error the workspace can only be closed.
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
		if w.dir, err = w.root.acquireDirectory(); err != nil {
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

// acquireDirectory returns a free directory, or creates one.
func (root *Root) acquireDirectory() (*directory, error) {
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

// Scratch creates a directory that belongs to no attempt. The caller removes it by calling remove; a directory that a killed worker
// leaves is removed like those of its attempts.
func (root *Root) Scratch() (dir string, remove func() error, err error) {
	d, err := root.acquireDirectory()
	if err != nil {
		return "", nil, err
	}
	return d.path, d.remove, nil
}

// directory returns the directory with a name, without creating it.
func (root *Root) directory(name string) (*directory, error) {
	// Paths are absolute because a task may change its directory before it uses them.
	path, err := filepath.Abs(filepath.Join(root.dir, name))
	if err != nil || root.tempDir == "" {
		return &directory{path: path, temp: filepath.Join(path, tempName)}, err
	}
	temp, err := filepath.Abs(filepath.Join(root.tempDir, name))
	return &directory{path: path, temp: temp}, err
}

// remove removes the directory and its temporary directory with all content.
func (d *directory) remove() error {
	if filepath.Dir(d.temp) == d.path {
		return Remove(d.path)
	}
	return errors.Join(Remove(d.path), Remove(d.temp))
}

// write writes the input file. It overwrites an existing file and then truncates it, rather than emptying it first:
// ext4 flushes a file on close if it was emptied.
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

// Close removes the free directories. All workspaces must have been closed before.
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

// Dir returns the workspace's directory, an absolute path.
func (w *Workspace) Dir() string { return w.dir.path }

// FilesDir returns the directory in which a task with files of its own starts, an absolute path inside Dir. MakeFiles creates it.
func (w *Workspace) FilesDir() string { return w.path(filesName) }

// MakeFiles creates the directory FilesDir.
func (w *Workspace) MakeFiles() error { return os.Mkdir(w.FilesDir(), 0o755) }

// OpenFiles opens the directory FilesDir. A task may have put a link in its place, which is not followed out of the workspace.
func (w *Workspace) OpenFiles() (*os.Root, error) {
	root, err := os.OpenRoot(w.dir.path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	files, err := root.OpenRoot(filesName)
	if err != nil {
		return nil, fmt.Errorf("open the folder of the task: %w", err)
	}
	return files, nil
}

// TempDir returns the attempt's temporary directory, an absolute path inside or outside Dir.
func (w *Workspace) TempDir() string { return w.dir.temp }

func (w *Workspace) path(name string) string { return filepath.Join(w.dir.path, name) }

// Output reads what the task wrote to SWITCHYARD_OUTPUT. If the file is missing or empty, the result is empty but not
// nil. Unusable content is a *ContentError, which quotes the text as mask returns it.
func (w *Workspace) Output(mask func([]byte) []byte) (*structpb.Struct, error) {
	return parseFile(w.path(outputFile), "SWITCHYARD_OUTPUT", MaxOutput, mask)
}

// ContextUpdate reads what the task wrote to SWITCHYARD_CONTEXT_UPDATE, under the same rules as Output.
func (w *Workspace) ContextUpdate(mask func([]byte) []byte) (*structpb.Struct, error) {
	return parseFile(w.path(contextUpdateFile), "SWITCHYARD_CONTEXT_UPDATE", MaxContextUpdate, mask)
}

// Close releases the workspace and removes what the attempt left in it, including files that it made read-only. No
// process of the attempt may still run. A second Close is a no-op.
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

// cleared removes the files that a task may write. It reports whether the directory is then as it was created, so that
// the next attempt can reuse it: nothing added, nothing replaced, no other path to it.
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
		case outputFile, contextUpdateFile, checkpointFile, interpreter.File:
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

// Remove removes a directory with all content, also if it is read-only. What is mounted below it is detached, and stays; if it cannot
// be detached, nothing is removed.
func Remove(dir string) error {
	if err := detachMounts(dir); err != nil {
		return fmt.Errorf("remove workspace: %w", err)
	}
	if os.RemoveAll(dir) == nil {
		return nil
	}
	// Only a user with write permission on a directory can remove its entries, and no user can remove an immutable
	// file.
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
