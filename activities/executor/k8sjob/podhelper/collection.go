package podhelper

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Fault is what is wrong with a file.
type Fault string

// Faults of files.
const (
	// Incomplete says that the log does not have all of the file: it was rotated, or cut, or something was printed into it.
	Incomplete Fault = "incomplete"
	// TooLarge says that the task has written more than MaxFile.
	TooLarge Fault = "too large"
	// Unreadable says that what the task has written is no file that the helper can read.
	Unreadable Fault = "unreadable"
)

// FileError is why a file of a task is missing.
type FileError struct {
	Kind   Kind
	Fault  Fault
	Reason string
}

// Error names the file by its variable.
func (e *FileError) Error() string {
	return fmt.Sprintf("%s is %s: %s", e.Kind.Variable(), e.Fault, e.Reason)
}

// ErrNoList says that the list of files has not been seen: the helper did not reach its end, or the log was rotated or cut.
var ErrNoList = errors.New("the log does not have the list of files that ends it")

// listed is a file of the list, and what has come of it.
type listed struct {
	kind Kind
	size int
	sum  string
	data []byte
	// next is the number of the next frame, from 1.
	next int
	// err is why there is no such file, or nil.
	err *FileError
}

// collection puts files together from their frames.
type collection struct {
	hasList bool
	files   []*listed
}

// frame takes the line of a frame without its marker, and reports whether it is well formed.
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

// list begins anew with the files of a list.
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

// parse reads what the list says of a file, and reports whether it is well formed.
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
		f.err = &FileError{f.kind, TooLarge, fmt.Sprintf("it has %d bytes, and at most %d can travel within the log of a pod", n, MaxFile)}
		return err == nil
	case stateUnreadable:
		reason, err := base64.StdEncoding.DecodeString(rest)
		f.err = &FileError{f.kind, Unreadable, string(reason)}
		return err == nil
	}
	return false
}

// chunk adds a part to a file. Only the next one is added, so that what is missing shows in the end.
func (c *collection) chunk(kind Kind, n int, data []byte) {
	for _, f := range c.files {
		if f.kind == kind && f.next == n && f.err == nil && len(f.data)+len(data) <= f.size {
			f.data = append(f.data, data...)
			f.next++
		}
	}
}

// result returns the files that are whole, and why the others are not.
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

// check returns what is wrong with a file when all frames have come, or nil.
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
