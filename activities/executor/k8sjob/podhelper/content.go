package podhelper

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// readFiles reads the files that the program has written, at the paths in its environment.
func readFiles(getenv func(string) string) []content {
	var files []content
	for _, kind := range kinds {
		path := getenv(kind.Variable())
		if path == "" {
			continue
		}
		f := content{kind: kind}
		f.data, f.size, f.err = readFile(path)
		if f.err != nil || f.size > 0 || len(f.data) > 0 {
			files = append(files, f)
		}
	}
	return files
}

// readFile returns the content of a file, or only its size if it is too large. A missing file counts as empty.
func readFile(path string) ([]byte, int64, error) {
	// O_NONBLOCK, because opening a pipe without a writer would block.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, &fs.PathError{Op: "read", Path: path, Err: errors.New("is not a regular file")}
	}
	if info.Size() > MaxFile {
		return nil, info.Size(), nil
	}
	data, err := io.ReadAll(io.LimitReader(file, MaxFile))
	return data, 0, err
}
