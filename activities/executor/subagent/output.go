package subagent

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// textLog writes the model's text to a log.
type textLog struct {
	to     io.Writer // or nil
	inLine bool
	err    error // of the first failed write
}

func (t *textLog) write(text string) {
	if text == "" || t.to == nil || t.err != nil {
		return
	}
	_, t.err = io.WriteString(t.to, text)
	t.inLine = !strings.HasSuffix(text, "\n")
}

// Write writes the output of commands to the log.
func (t *textLog) Write(text []byte) (int, error) {
	t.write(string(text))
	return len(text), t.err
}

// endLine writes a line break if the last line has none.
func (t *textLog) endLine() {
	if t.inLine {
		t.write("\n")
	}
}

// writeOutput writes the output of the task. Commands of the agent may have put anything in place of the file.
func writeOutput(workspace, path string, output any) error {
	if path == "" || workspace == "" {
		return nil
	}
	text, err := json.Marshal(output)
	if err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	defer root.Close()
	name, err := filepath.Rel(workspace, path)
	if err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	if err := root.RemoveAll(name); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	_, err = file.Write(text)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}
