package executor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"switchyard/workflows/interpreter"
)

// WriteScript writes the text of a command for its interpreter, if that reads the text from a file, to the private directory of
// the attempt. It returns the path of the file.
func (d Dirs) WriteScript(p interpreter.Program) (string, error) {
	text := p.InFile()
	if text == "" {
		return "", nil
	}
	if d.Workspace == "" {
		return "", errors.New("the attempt has no directory for the file of its command")
	}
	path := filepath.Join(d.Workspace, interpreter.File)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("write the command to a file: %w", err)
	}
	return path, nil
}
