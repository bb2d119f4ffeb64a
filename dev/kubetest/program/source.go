package program

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// folder is the folder of the program's source in Switchyard's module.
const folder = "dev/kubernetes"

// moduleRoot returns the folder with this module's go.mod: the working folder or one of its parents.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, folder, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("the working folder is outside Switchyard's source")
		}
		dir = parent
	}
}

// sourceHash returns a hash of the program's source files and of the Go version.
func sourceHash(root string) (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, runtime.Version(), runtime.GOARCH)
	source := filepath.Join(root, folder)
	err := filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		switch filepath.Ext(path) {
		case ".go", ".mod", ".sum", ".sh":
		default:
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(source, path)
		fmt.Fprintf(hash, "%s %d\n%s", name, len(text), text)
		return err
	})
	return hex.EncodeToString(hash.Sum(nil))[:16], err
}
