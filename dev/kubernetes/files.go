package main

import (
	"errors"
	"os"
	"path/filepath"
)

// files is the absolute path of a cluster's folder.
type files string

func (f files) path(name string) string { return filepath.Join(string(f), name) }

// makeFolders creates the folder of a cluster and its subfolders.
func (f files) makeFolders() error {
	var errs []error
	for _, name := range []string{"pki", "log", "etcd", "cni"} {
		errs = append(errs, os.MkdirAll(f.path(name), 0o700))
	}
	return errors.Join(errs...)
}
