package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"connectrpc.com/connect"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// levelPrefix begins the keys that say which data levels may be in a store.
const levelPrefix = "level-"

// levelGap is how many levels without a key the check of a store passes. A program writes the keys of all levels up to its own, but
// keys can be removed by hand.
const levelGap = 4

// maxVersionRunes is the longest part of a version that is shown.
const maxVersionRunes = 64

// LevelKey returns the key whose presence says that a program that writes a data level above 1 has used the store. Its value is
// the version of the first such program. A gateway serves it but refuses to write it.
func LevelKey(level int) string { return levelPrefix + strconv.Itoa(level) }

// IsLevelKey reports whether a key is that of a data level.
func IsLevelKey(key string) bool {
	level, err := strconv.Atoi(strings.TrimPrefix(key, levelPrefix))
	return err == nil && key == LevelKey(level)
}

// CheckLevel returns a *historyv1.NewerDataError if this program would misread values of the store. It changes nothing.
func (s *Store) CheckLevel(ctx context.Context) error { return checkLevel(ctx, s.backend) }

func checkLevel(ctx context.Context, b backend) error {
	return checkLevelKeys(b.location(), func(key string) ([]byte, error) { return b.get(ctx, key) })
}

// checkLevelKeys checks the data level of the store at a location. get returns values of that store.
func checkLevelKeys(location string, get func(key string) ([]byte, error)) error {
	readable := historyv1.ReadableDataLevel()
	newer := &historyv1.NewerDataError{What: "the store " + location}
	for level := readable + 1; level <= max(readable, newer.Level)+levelGap; level++ {
		by, err := get(LevelKey(level))
		if connect.CodeOf(err) == connect.CodeInvalidArgument { // a gateway of level 1 does not know the key
			break
		}
		switch {
		case errors.Is(err, ErrNotFound):
		case err != nil:
			return fmt.Errorf("read the data level of the store %s: %w", location, err)
		default:
			newer.Level, newer.By = level, printableVersion(by)
		}
	}
	if newer.Level > 0 {
		return newer
	}
	return nil
}

// printableVersion returns the version in the value of a level, quoted if it could disturb a terminal.
func printableVersion(value []byte) string {
	version := strings.TrimSpace(string(value))
	if quoted := fmt.Sprintf("%.*q", maxVersionRunes, version); quoted != `"`+version+`"` {
		return quoted
	}
	return version
}

// raiseLevel records that a version, which writes a data level, uses a store. A program that does not understand the level refuses
// the store from then on.
func raiseLevel(ctx context.Context, b backend, written int, version string) error {
	for level := 2; level <= written; level++ {
		if _, err := b.ensure(ctx, LevelKey(level), version); err != nil {
			return fmt.Errorf("record the data level %d: %w", level, err)
		}
	}
	return nil
}
