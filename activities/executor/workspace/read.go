package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"google.golang.org/protobuf/types/known/structpb"
)

// read parses a file that a task may have written, and may have replaced by
// anything: a link to a secret of the worker's, or a pipe that nobody writes to.
// No process of the task is left to replace it once more.
func read(path, name string, most int64) (*structpb.Struct, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return &structpb.Struct{}, nil
	}
	if info, e := os.Lstat(path); e == nil && !info.Mode().IsRegular() {
		if err == nil {
			f.Close()
		}
		return nil, &ContentError{File: name, Reason: "is not a regular file"}
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, &ContentError{File: name, Reason: "cannot be read: permission denied"}
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(text)) > most {
		return nil, &ContentError{File: name, Reason: fmt.Sprintf("is larger than %d KiB", most>>10)}
	}
	s, err := parse(text)
	if content, ok := errors.AsType[*ContentError](err); ok {
		content.File = name
	}
	return s, err
}
