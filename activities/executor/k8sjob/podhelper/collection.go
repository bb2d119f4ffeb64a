package podhelper

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Fault is the kind of problem with a file.
type Fault string

// Kinds of problems with files.
const (
	// Incomplete means that the log lacks a part of the file: it was rotated or cut, or other output was mixed in.
	Incomplete Fault = "incomplete"
	// TooLarge means that the task wrote more than MaxFile.
	TooLarge Fault = "too large"
	// Unreadable means that the helper could not read what the task wrote.
	Unreadable Fault = "unreadable"
)

// FileError reports why a file of a task is missing.
type FileError struct {
	Kind   Kind
	Fault  Fault
	Reason string
}

// Error returns a message that names the file by its variable.
func (e *FileError) Error() string {
	return fmt.Sprintf("%s is %s: %s", e.Kind.Variable(), e.Fault, e.Reason)
}

// ErrNoList reports that the list of files was not seen: the helper did not reach its end, or the log was rotated or
// cut.
var ErrNoList = errors.New("the log has no file list at its end")

// listed is a file of the list and its state.
type listed struct {
	kind Kind
	size int
	sum  string
	data []byte
	// next is the number of the next expected frame, from 1.
	next int
	// err is why the file is missing, or nil.
	err *FileError
}

// collection assembles files from their frames.
type collection struct {
	hasList bool
	files   []*listed
}

// frame handles the line of a frame without its marker, and reports whether it is well-formed.
func (c *collection) frame(line string) bool {
	words := strings.Split(line, " ")
	if words[0] == listWord {
		return c.list(words[1:])
	}
	if len(words) != 3 {
		return false
	}
	before, after, found := strings.Cut(words[1], "/")
	n, err := strconv.Atoi(before)
	total, err2 := strconv.Atoi(after)
	data, err3 := base64.StdEncoding.Strict().DecodeString(words[2])
	if !found || err != nil || err2 != nil || err3 != nil || n < 1 || n > total || len(data) == 0 || len(data) > chunkSize {
		return false
	}
	c.chunk(Kind(words[0]), n, data)
	return true
}

// list starts over with the files of a list.
func (c *collection) list(entries []string) bool {
	var files []*listed
	for _, entry := range entries {
		kind, text, _ := strings.Cut(entry, "=")
		f := &listed{kind: Kind(kind), next: 1}
		if !slices.Contains(kinds, f.kind) || !f.parse(text) {
			return false
		}
		files = append(files, f)
	}
	c.hasList, c.files = true, files
	return true
}

// parse reads the list's entry for a file, and reports whether it is well-formed.
func (f *listed) parse(text string) bool {
	state, rest, _ := strings.Cut(text, ":")
	switch state {
	case stateWhole:
		size, sum, _ := strings.Cut(rest, ":")
		n, err := strconv.Atoi(size)
		f.size, f.sum = n, sum
		return err == nil && n > 0 && n <= MaxFile
	case stateLarge:
		n, err := strconv.ParseInt(rest, 10, 64)
		f.err = &FileError{f.kind, TooLarge, fmt.Sprintf("the file has %d bytes; at most %d can be transferred in the log of a pod", n, MaxFile)}
		return err == nil
	case stateUnreadable:
		reason, err := base64.StdEncoding.DecodeString(rest)
		f.err = &FileError{f.kind, Unreadable, string(reason)}
		return err == nil
	}
	return false
}

// chunk appends a part to a file. It accepts only the next part, so that a missing part is detected in the end.
func (c *collection) chunk(kind Kind, n int, data []byte) {
	for _, f := range c.files {
		if f.kind == kind && f.next == n && f.err == nil && len(f.data)+len(data) <= f.size {
			f.data = append(f.data, data...)
			f.next++
		}
	}
}

// result returns the complete files, and an error for the others.
func (c *collection) result() (map[Kind][]byte, error) {
	if !c.hasList {
		return nil, ErrNoList
	}
	whole := map[Kind][]byte{}
	var errs []error
	for _, f := range c.files {
		switch err := f.check(); {
		case err != nil:
			errs = append(errs, err)
		default:
			whole[f.kind] = f.data
		}
	}
	return whole, errors.Join(errs...)
}

// check returns what is wrong with a file after all frames, or nil.
func (f *listed) check() error {
	switch {
	case f.err != nil:
		return f.err
	case len(f.data) < f.size:
		return &FileError{f.kind, Incomplete, fmt.Sprintf("frame %d of %d is missing or damaged, because the log of the pod was rotated, cut or written by something else", f.next, chunksOf(f.size))}
	case sumOf(f.data) != f.sum:
		return &FileError{f.kind, Incomplete, "its SHA-256 differs, because the log of the pod was changed"}
	}
	return nil
}
