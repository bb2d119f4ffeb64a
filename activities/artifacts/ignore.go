package artifacts

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

const gitFolder = ".git"

// ignoreFiles are the files that say which files of their folder, and of those below it, stay behind. Later ones go first.
var ignoreFiles = []string{".gitignore", ".switchyardignore"}

// ignored holds the patterns of the files that a source leaves behind, in the syntax of gitignore(5).
type ignored struct {
	// above is the path of the source in its repository.
	above    []string
	patterns []gitignore.Pattern
}

// newIgnored returns the patterns that apply to a folder from above it, if it is in a repository.
func newIgnored(dir string) (*ignored, error) {
	i := &ignored{}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	top := dir
	for !exists(filepath.Join(top, gitFolder)) {
		parent := filepath.Dir(top)
		if parent == top {
			return i, nil
		}
		top = parent
	}
	exclude, err := os.ReadFile(filepath.Join(top, gitFolder, "info", "exclude"))
	if err == nil {
		i.add(exclude, nil)
	}
	rest, err := filepath.Rel(top, dir)
	if err != nil || rest == "." {
		return i, err
	}
	i.above = strings.Split(filepath.ToSlash(rest), "/")
	for n := range i.above {
		folder := filepath.Join(append([]string{top}, i.above[:n]...)...)
		if err := i.read(os.DirFS(folder).(fs.ReadFileFS), ".", i.above[:n]); err != nil {
			return nil, err
		}
	}
	return i, nil
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// enter adds the patterns of a folder, and returns a function that removes them.
func (i *ignored) enter(root *os.Root, folder string) (leave func(), err error) {
	if i == nil {
		return func() {}, nil
	}
	before := len(i.patterns)
	err = i.read(root.FS().(fs.ReadFileFS), folder, i.parts(folder))
	return func() { i.patterns = i.patterns[:before] }, err
}

// read adds the patterns in the files of a folder, which has a path in the repository.
func (i *ignored) read(files fs.ReadFileFS, folder string, at []string) error {
	for _, name := range ignoreFiles {
		text, err := files.ReadFile(path.Join(folder, name))
		switch {
		case err == nil:
			i.add(text, at)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	return nil
}

func (i *ignored) add(text []byte, at []string) {
	for line := range bytes.Lines(text) {
		pattern := strings.TrimRight(string(line), "\r\n")
		if strings.TrimSpace(pattern) == "" || strings.HasPrefix(pattern, "#") {
			continue
		}
		i.patterns = append(i.patterns, gitignore.ParsePattern(pattern, at))
	}
}

// parts returns the path of a file in the repository.
func (i *ignored) parts(name string) []string {
	parts := i.above[:len(i.above):len(i.above)]
	if name == "." {
		return parts
	}
	return append(parts, strings.Split(name, "/")...)
}

// leavesOut reports whether a file stays behind.
func (i *ignored) leavesOut(name string, isFolder bool) bool {
	if i == nil {
		return false
	}
	if path.Base(name) == gitFolder {
		return true
	}
	parts := i.parts(name)
	for n := len(i.patterns) - 1; n >= 0; n-- {
		if match := i.patterns[n].Match(parts, isFolder); match != gitignore.NoMatch {
			return match == gitignore.Exclude
		}
	}
	return false
}
