package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Target is where an archive is unpacked.
type Target struct {
	// Dir is a folder that exists.
	Dir string
	// Name is the name in Dir of what the archive holds. "" puts what its folder holds into Dir itself.
	Name string
}

// TargetOf returns where what is called source goes when it is copied to a path of this machine, as cp and docker cp do: into
// a folder that exists, under its own name, or else under the name that the path ends with. contents asks for what is in the
// folder instead of the folder.
func TargetOf(destination, source string, contents bool) (Target, error) {
	info, err := os.Stat(destination)
	switch {
	case err == nil && info.IsDir():
		if contents {
			source = ""
		}
		return Target{destination, source}, nil
	case err == nil && hasSlash(destination):
		return Target{}, fmt.Errorf("%s is not a folder", destination)
	case err == nil:
		// A link stays, and what it leads to is replaced.
		if destination, err = filepath.EvalSymlinks(destination); err != nil {
			return Target{}, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return Target{}, err
	}
	dir, name := filepath.Dir(filepath.Clean(destination)), filepath.Base(filepath.Clean(destination))
	if info, err := os.Stat(dir); err != nil {
		return Target{}, err
	} else if !info.IsDir() {
		return Target{}, fmt.Errorf("%s is not a folder", dir)
	}
	return Target{dir, name}, nil
}

func hasSlash(path string) bool {
	return strings.HasSuffix(path, "/") || strings.HasSuffix(path, string(filepath.Separator))
}
