package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Target is the place where an archive is unpacked.
type Target struct {
	// Dir is an existing folder.
	Dir string
	// Name is the name in Dir for the top entry of the archive. "" unpacks the contents of the top folder into Dir
	// itself.
	Name string
	// New makes an entry whose name exists an error, unless both are folders. Otherwise the entry replaces what is there.
	New bool
}

// TargetOf returns the target for an entry called source that is copied to a path of this machine, by the rules of cp
// and docker cp: in an existing folder it keeps its own name, else it gets the last element of the path. contents asks
// for the contents of the folder instead of the folder itself.
func TargetOf(destination, source string, contents bool) (Target, error) {
	info, err := os.Stat(destination)
	switch {
	case err == nil && info.IsDir():
		if contents {
			source = ""
		}
		return Target{Dir: destination, Name: source}, nil
	case err == nil && hasSlash(destination):
		return Target{}, fmt.Errorf("%s is not a folder", destination)
	case err == nil:
		// A link at the destination stays; its target is replaced.
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
	return Target{Dir: dir, Name: name}, nil
}

func hasSlash(path string) bool {
	return strings.HasSuffix(path, "/") || strings.HasSuffix(path, string(filepath.Separator))
}
