package embedded

import (
	"errors"
	"fmt"

	"switchyard/activities/filelock"
)

// lockDatabase locks the database at path with a file beside it. If another process holds the lock, the error names
// that process.
func lockDatabase(path string) (*filelock.Lock, error) {
	lock, err := filelock.Take(path + ".lock")
	if held, ok := errors.AsType[*filelock.HeldError](err); ok {
		holder := ""
		if held.PID != 0 {
			holder = fmt.Sprintf(" (pid %d)", held.PID)
		}
		return nil, fmt.Errorf("database %s is in use by another process%s", path, holder)
	}
	if err != nil {
		return nil, fmt.Errorf("lock database %s: %w", path, err)
	}
	return lock, nil
}
