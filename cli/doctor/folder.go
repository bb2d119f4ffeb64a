package doctor

import (
	"os"
	"path/filepath"
)

// existingParent returns the nearest folder above a path, or the path itself, that exists.
func existingParent(path string) string {
	path, err := filepath.Abs(path)
	for err == nil {
		if _, err := os.Stat(path); err == nil {
			return path
		}
		if path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
	return "/"
}
