package podhelper

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// readFiles reads the files that the program has written, by the paths in its environment.
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

// readFile returns a file, or its size if that is too large. A file that does not exist is empty.
func readFile(path string) ([]byte, int64, error) {
	// A pipe without a writer would not open otherwise.
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
