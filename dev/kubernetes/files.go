package main

import (
	"errors"
	"os"
	"path/filepath"
)

// files is the folder of a cluster, an absolute path.
type files string

func (f files) path(name string) string { return filepath.Join(string(f), name) }

// makeFolders makes the folder of a cluster and those in it.
func (f files) makeFolders() error {
	var errs []error
	for _, name := range []string{"pki", "log", "etcd", "cni"} {
		errs = append(errs, os.MkdirAll(f.path(name), 0o700))
	}
	return errors.Join(errs...)
}
