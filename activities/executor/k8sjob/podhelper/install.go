package podhelper

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// BinaryName is the file name of the installed helper.
const BinaryName = "switchyard"

// Install copies the running binary to an existing directory, executable for every user. It replaces a binary that is
// already there, even while that one is running.
func Install(dir string) error {
	self, err := os.Executable()
	if err == nil {
		err = copyProgram(self, filepath.Join(dir, BinaryName))
	}
	if err != nil {
		return fmt.Errorf("install %s in %s: %w", BinaryName, dir, err)
	}
	return nil
}

// copyProgram copies a program through a temporary file.
func copyProgram(from, to string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	temp, err := os.CreateTemp(filepath.Dir(to), ".switchyard-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp.Name())
		}
	}()
	_, err = io.Copy(temp, source)
	if err == nil {
		err = temp.Chmod(0o755)
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), to)
}
