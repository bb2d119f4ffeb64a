package storekey

import (
	"fmt"
	"strings"
)

// MaxKeyBytes is more than any key of keys.go has.
const MaxKeyBytes = 1024

// TemporarySuffix is how the names of files end that a writer to a folder has not
// finished; a writer that is killed leaves such a file behind.
const TemporarySuffix = ".tmp"

// Check says what is wrong with a key that comes from elsewhere: one of
// keys.go is runs/<run>/ and at least one more segment, each of letters, digits,
// '.', '_' and '-' as the functions there make them, and of brackets, which the home of
// a part of a fan-out has. A value under such a key is one of that run and nothing else,
// in every kind of store.
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
			return fmt.Errorf("%q is no key: %q cannot be a part of one", key, segment)
		}
	}
	return nil
}

// CheckPrefix says what is wrong with the prefix of a list that comes from
// elsewhere: it starts with runs/<run>/ and may end within a segment.
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
			return fmt.Errorf("%q starts no key: %q cannot be a part of one", prefix, segment)
		}
	}
	if last := segments[len(segments)-1]; strings.ContainsFunc(last, notInKey) {
		return fmt.Errorf("%q starts no key: %q cannot be in one", prefix, last)
	}
	return nil
}

// SplitRun takes a key apart behind runs/<run>/.
func SplitRun(key string) (run, rest string, err error) {
	below, ok := strings.CutPrefix(key, RunsPrefix)
	run, rest, found := strings.Cut(below, "/")
	if !ok || !found || len(key) > MaxKeyBytes {
		return "", "", fmt.Errorf("%.80q is no key: one is %s<run>/... and at most %d bytes", key, RunsPrefix, MaxKeyBytes)
	}
	return run, rest, nil
}

// isSegment says that s may stand between slashes. A bucket would
// escape a slash behind "..", and takes "__0x" for an escape.
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

// CheckRun refuses what is no run id and would widen a prefix to other runs. The id of
// a run that a schedule has started holds the time, with colons.
func CheckRun(run string) error {
	if !isSegment(strings.ReplaceAll(run, ":", "")) {
		return fmt.Errorf("%.80q is no run id", run)
	}
	return nil
}
