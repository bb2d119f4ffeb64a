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

// CheckNewFolder returns an error if this process can neither write to a folder nor create it. It leaves nothing behind, and
// creates nothing in an existing folder, because readers of a store would take it for one of their objects.
func CheckNewFolder(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return canWrite(dir)
	}
	return ProbeFolder(existingParent(dir))
}

// ProbeFolder returns an error if this process cannot create folders in a folder. It leaves nothing behind.
func ProbeFolder(dir string) error {
	probe, err := os.MkdirTemp(dir, ".switchyard-probe-")
	if err != nil {
		return err
	}
	return os.Remove(probe)
}
