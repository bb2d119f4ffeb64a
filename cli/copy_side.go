package cli

import (
	"path"
	"path/filepath"
	"strings"

	"switchyard/cli/exit"
)

// copySide is one side of a copy: a path of a task, a path of this machine, or an archive on a standard stream.
type copySide struct {
	// target is RUN, or RUN and TASK, for a path of a task; else it is empty.
	target []string
	path   string
	// stream is true for "-".
	stream bool
}

// parseCopySide parses RUN/TASK:PATH, RUN:PATH, a path of this machine, or "-". A path of this machine that contains a
// colon must begin with / or a dot.
func parseCopySide(text string) (copySide, error) {
	head, tail, remote := strings.Cut(text, ":")
	if text == "-" {
		return copySide{stream: true}, nil
	}
	if !remote || strings.HasPrefix(text, "/") || strings.HasPrefix(text, ".") || filepath.VolumeName(text) != "" {
		return copySide{path: text}, nil
	}
	target := strings.SplitN(head, "/", 2)
	if target[0] == "" || target[len(target)-1] == "" {
		return copySide{}, exit.Usagef("%q names no task; write RUN/TASK:PATH, or ./%s for a local file with a colon in its name", text, text)
	}
	if tail == "" {
		return copySide{}, exit.Usagef("%s has no path; write %s. for the folder in which the task's program started", text, text)
	}
	return copySide{target: target, path: tail}, nil
}

// isRemote reports whether the side is a path of a task.
func (c copySide) isRemote() bool { return len(c.target) > 0 }

// contents reports whether the side means the contents of a folder instead of the folder itself: the path ends with
// "/.", or has no name.
func (c copySide) contents() bool {
	return strings.HasSuffix(c.slashed(), "/.") || c.name() == ""
}

// name returns the last element of the path, or "" if that cannot name a file, such as "..".
func (c copySide) name() string {
	switch name := path.Base(path.Clean(c.slashed())); name {
	case ".", "..", "/":
		return ""
	default:
		return name
	}
}

// endsInSlash reports whether the path ends in a slash and so can only mean a folder.
func (c copySide) endsInSlash() bool { return strings.HasSuffix(c.slashed(), "/") }

func (c copySide) slashed() string {
	if c.isRemote() {
		return c.path
	}
	return filepath.ToSlash(c.path)
}
