package disk

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"switchyard/activities/executor"
)

// directoriesFlag is the worker flag that allows a directory of images.
const directoriesFlag = "--vm-images DIR"

// ofNode returns the image at a path of the node.
func (m *Images) ofNode(ctx context.Context, path string) (Base, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		// Whether a file exists is revealed only for allowed directories.
		if !isBelow(filepath.Clean(path), m.opts.Directories) {
			return Base{}, m.notAllowed()
		}
		return Base{}, &executor.StartError{ExitCode: exitCannotRun, Err: err}
	}
	var allowed []string
	for _, directory := range m.opts.Directories {
		if real, err := filepath.EvalSymlinks(directory); err == nil {
			allowed = append(allowed, real)
		}
	}
	if !isBelow(resolved, allowed) {
		return Base{}, m.notAllowed()
	}
	info, err := inspect(ctx, resolved, filepath.Base(path))
	if err != nil {
		return Base{}, classify(ctx, err)
	}
	return Base{Path: resolved, Format: info.Format, VirtualSize: info.VirtualSize}, nil
}

// notAllowed returns the error for a path outside of the allowed directories. Another node may allow it.
func (m *Images) notAllowed() error {
	err := fmt.Errorf("path is outside of the image directories of this node (%s); the operator can add a directory with %s of `switchyard worker`",
		strings.Join(m.opts.Directories, ", "), directoriesFlag)
	if len(m.opts.Directories) == 0 {
		err = fmt.Errorf("this node does not allow image paths; the operator can allow a directory with %s of `switchyard worker`", directoriesFlag)
	}
	return &executor.StartError{ExitCode: exitCannotRun, Err: err}
}

// isBelow reports whether a path is below one of the directories.
func isBelow(path string, directories []string) bool {
	for _, directory := range directories {
		relative, err := filepath.Rel(directory, path)
		if err == nil && relative != "." && filepath.IsLocal(relative) {
			return true
		}
	}
	return false
}
