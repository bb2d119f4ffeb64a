package storekey

import (
	"fmt"
	"strings"
)

// MaxKeyBytes exceeds the length of any key of this package.
const MaxKeyBytes = 1024

// TemporarySuffix is the suffix of files in a folder whose writers have not finished. A killed writer leaves such a file
// behind.
const TemporarySuffix = ".tmp"

// Check returns what is wrong with a key from an untrusted source, or nil. A valid key is runs/<run>/ with at least one
// more segment. Segments consist of letters, digits, '.', '_', '-', and brackets, which appear in the home of a part of a
// fan-out. A value under a valid key belongs to that run and to nothing else, in every kind of store.
func Check(key string) error {
	run, rest, err := SplitRun(key)
	if err != nil {
		return err
	}
	if err := CheckRun(run); err != nil {
		return err
	}
	for _, segment := range strings.Split(rest, "/") {
		if !isSegment(segment) || strings.HasSuffix(segment, TemporarySuffix) {
			return fmt.Errorf("%q is not a key: %q cannot be a part of one", key, segment)
		}
	}
	return nil
}

// CheckPrefix returns what is wrong with the prefix of a list from an untrusted source, or nil. A valid prefix starts
// with runs/<run>/ and may end within a segment.
func CheckPrefix(prefix string) error {
	run, rest, err := SplitRun(prefix)
	if err != nil {
		return err
	}
	if err := CheckRun(run); err != nil {
		return err
	}
	segments := strings.Split(rest, "/")
	for _, segment := range segments[:len(segments)-1] {
		if !isSegment(segment) {
			return fmt.Errorf("%q is not a prefix of a key: %q cannot be a part of one", prefix, segment)
		}
	}
	if last := segments[len(segments)-1]; strings.ContainsFunc(last, notInKey) {
		return fmt.Errorf("%q is not a prefix of a key: %q cannot be in one", prefix, last)
	}
	return nil
}

// SplitRun splits a key after runs/<run>/.
func SplitRun(key string) (run, rest string, err error) {
	below, ok := strings.CutPrefix(key, RunsPrefix)
	run, rest, found := strings.Cut(below, "/")
	if !ok || !found || len(key) > MaxKeyBytes {
		return "", "", fmt.Errorf("%.80q is not a key: one is %s<run>/... and at most %d bytes", key, RunsPrefix, MaxKeyBytes)
	}
	return run, rest, nil
}

// isSegment reports whether s may be a segment of a key. A bucket would escape a slash after "..", and would read "__0x"
// as an escape sequence.
func isSegment(s string) bool {
	return s != "" && s != "." && !strings.HasSuffix(s, "..") && !strings.Contains(s, escapeLike) && !strings.ContainsFunc(s, notInKey)
}

func notInKey(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '_', r == '-', r == '[', r == ']':
		return false
	}
	return true
}

// CheckRun returns an error unless run is a valid run id, which cannot widen a prefix to other runs. The id of a run that
// a schedule has started contains a time with colons.
func CheckRun(run string) error {
	if !isSegment(strings.ReplaceAll(run, ":", "")) {
		return fmt.Errorf("%.80q is not a run id", run)
	}
	return nil
}
