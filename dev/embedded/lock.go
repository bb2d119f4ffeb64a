package embedded

import (
	"errors"
	"fmt"

	"switchyard/activities/filelock"
)

// lockDatabase takes the lock of the database at path, a file beside it, or says who has it.
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
