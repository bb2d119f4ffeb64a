package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"google.golang.org/protobuf/types/known/structpb"
)

// parseFile parses a file that a task may have written. See readFile for what it refuses.
func parseFile(path, name string, most int64, mask func([]byte) []byte) (*structpb.Struct, error) {
	text, _, err := readFile(path, name, most)
	if err != nil || text == nil {
		return &structpb.Struct{}, err
	}
	s, err := parse(text)
	if content, ok := errors.AsType[*ContentError](err); ok {
		content = content.masked(text, mask(text))
		content.File = name
		err = content
	}
	return s, err
}

// masked returns the error that the text gives with its secrets replaced. The original error may quote a part of a
// secret, which masking the message would miss.
func (e *ContentError) masked(text, masked []byte) *ContentError {
	if bytes.Equal(text, masked) {
		return e
	}
	if _, err := parse(masked); err != nil {
		if of, ok := errors.AsType[*ContentError](err); ok {
			return of
		}
	}
	return &ContentError{Line: e.Line, Reason: "cannot be parsed; the reason is hidden because the file contains secrets"}
}

// readFile reads a file that a task may have written, or replaced by anything: a link to a secret of the worker, or a
// pipe without a writer. text is nil if the file does not exist. info describes the file as it was before it was read.
func readFile(path, name string, most int64) (text []byte, info fs.FileInfo, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if info, e := os.Lstat(path); e == nil && !info.Mode().IsRegular() {
		if err == nil {
			f.Close()
		}
		return nil, nil, &ContentError{File: name, Reason: "is not a regular file"}
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, nil, &ContentError{File: name, Reason: "cannot be read: permission denied"}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer f.Close()
	// A running task may replace the file after the Lstat above.
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		return nil, nil, &ContentError{File: name, Reason: "is not a regular file"}
	}
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(f, most+1))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(text)) > most {
		return nil, info, &ContentError{File: name, Reason: fmt.Sprintf("is larger than %d KiB", most>>10)}
	}
	return text, info, nil
}
