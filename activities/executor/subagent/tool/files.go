package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

// Bounds of the file tools.
const (
	maxRead  = 64 << 10 // bytes that one call reads
	maxWrite = 1 << 20  // bytes of a file that is written or edited
	maxList  = 1000     // entries that one call lists
)

// Files returns the tools read_file, write_file, edit_file and list_files. They reach only the work directory, and open
// only regular files.
func Files(tree *Tree) []Tool {
	return []Tool{
		&fileTool{tree: tree, do: readFile, definition: Definition{
			Name: "read_file",
			Description: fmt.Sprintf("Reads a text file of the work directory, at most %d KiB in one call. Where more follows, the result says at which line to continue.",
				maxRead>>10),
			Schema: json.RawMessage(`{"type":"object","properties":{` +
				`"path":{"type":"string","description":"The file, relative to the work directory."},` +
				`"offset":{"type":"integer","minimum":1,"description":"The first line to read, counted from 1."},` +
				`"limit":{"type":"integer","minimum":1,"description":"How many lines to read."}},` +
				`"required":["path"],"additionalProperties":false}`),
		}},
		&fileTool{tree: tree, do: writeFile, definition: Definition{
			Name: "write_file",
			Description: fmt.Sprintf("Writes a file of the work directory, at most %d MiB, in place of what is there. Missing directories are created. A file that begins with #! is executable.",
				maxWrite>>20),
			Schema: json.RawMessage(`{"type":"object","properties":{` +
				`"path":{"type":"string","description":"The file, relative to the work directory."},` +
				`"content":{"type":"string","description":"The whole content."}},` +
				`"required":["path","content"],"additionalProperties":false}`),
		}},
		&fileTool{tree: tree, do: editFile, definition: Definition{
			Name:        "edit_file",
			Description: "Replaces text in a file of the work directory. The old text must occur exactly once, unless all is true.",
			Schema: json.RawMessage(`{"type":"object","properties":{` +
				`"path":{"type":"string","description":"The file, relative to the work directory."},` +
				`"old":{"type":"string","description":"The text to replace, as it stands in the file, white space included."},` +
				`"new":{"type":"string","description":"The text that takes its place."},` +
				`"all":{"type":"boolean","description":"Replaces every occurrence."}},` +
				`"required":["path","old","new"],"additionalProperties":false}`),
		}},
		&fileTool{tree: tree, do: listFiles, definition: Definition{
			Name: "list_files",
			Description: fmt.Sprintf("Lists a directory of the work directory, or with a pattern all files below it that match, at most %d. Directories end in /.",
				maxList),
			Schema: json.RawMessage(`{"type":"object","properties":{` +
				`"path":{"type":"string","description":"The directory, relative to the work directory, which is the default."},` +
				`"pattern":{"type":"string","description":"Such as *.go, which matches names at any depth, or src/**/*.go, which matches paths below the directory."}},` +
				`"additionalProperties":false}`),
		}},
	}
}

// fileTool is one of the file tools.
type fileTool struct {
	tree       *Tree
	definition Definition
	do         func(ctx context.Context, w *workFiles, call Call) (Outcome, error)
}

// Definition returns the description for the model.
func (t *fileTool) Definition() Definition { return t.definition }

// Call runs the tool.
func (t *fileTool) Call(ctx context.Context, call Call) (Outcome, error) {
	release, err := t.tree.acquire(ctx)
	if err != nil {
		return Outcome{}, err
	}
	defer release()
	root, err := t.tree.open()
	if err != nil {
		return Outcome{}, err
	}
	defer root.Close()
	owner, err := t.tree.owner()
	if err != nil {
		return Outcome{}, err
	}
	return t.do(ctx, &workFiles{tree: t.tree, root: root, owner: owner}, call)
}

// workFiles provides access to the work directory during one call.
type workFiles struct {
	tree  *Tree
	root  *os.Root
	owner owner
}

// errNotRegular refuses files that could block a tool or give it access to a device.
var errNotRegular = errors.New("it is not a regular file")

// open opens a regular file. It checks the file before it opens it, because opening a device may have side effects.
func (w *workFiles) open(name string, flags int) (*os.File, fs.FileInfo, error) {
	switch info, err := w.root.Stat(name); {
	case err == nil && info.IsDir():
		return nil, nil, errors.New("it is a directory; use list_files")
	case err == nil && !info.Mode().IsRegular():
		return nil, nil, errNotRegular
	case err != nil && (flags&os.O_CREATE == 0 || !errors.Is(err, fs.ErrNotExist)):
		return nil, nil, err
	}
	f, err := w.root.OpenFile(name, flags|openFlags, fileMode)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// load reads a file for an edit.
func (w *workFiles) load(name string) ([]byte, error) {
	f, _, err := w.open(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxWrite+1))
	if err == nil && len(data) > maxWrite {
		err = fmt.Errorf("it is larger than %d MiB; use the shell", maxWrite>>20)
	}
	return data, err
}

// store writes a file. It overwrites an existing file in place, so that the file keeps its permissions.
func (w *workFiles) store(name string, content []byte) (err error) {
	if err := w.makeDirs(path.Dir(name)); err != nil {
		return err
	}
	_, missing := w.root.Lstat(name)
	f, _, err := w.open(name, os.O_WRONLY|os.O_CREATE)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if errors.Is(missing, fs.ErrNotExist) {
		mode := fileMode
		if len(content) > 2 && string(content[:2]) == "#!" {
			mode |= 0o111
		}
		if err := errors.Join(f.Chmod(mode), w.owner.giveFile(f)); err != nil {
			return err
		}
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.Write(content)
	return err
}

// makeDirs creates a directory and its parents.
func (w *workFiles) makeDirs(name string) error {
	if name == "." {
		return nil
	}
	switch info, err := w.root.Stat(name); {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%s is not a directory", name)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := w.makeDirs(path.Dir(name)); err != nil {
		return err
	}
	if err := w.root.Mkdir(name, dirMode); err != nil {
		return err
	}
	return errors.Join(w.root.Chmod(name, dirMode), w.owner.giveDir(w.root, name))
}

// fileFailure returns the outcome of a failed file operation.
func fileFailure(verb, name string, err error) Outcome {
	if wrapped, ok := errors.AsType[*fs.PathError](err); ok {
		err = wrapped.Err
	}
	return failure("cannot %s %s: %v", verb, name, err)
}
