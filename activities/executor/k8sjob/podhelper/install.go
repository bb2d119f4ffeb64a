package podhelper

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// BinaryName is the name of the helper in the directory where it is installed.
const BinaryName = "switchyard"

// Install copies the running binary to a directory that exists, for every user to execute. It replaces one that is there, also
// if that is running.
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

// copyProgram copies a program by way of a temporary file.
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
