package shell

import (
	"errors"
	"fmt"
	"log/slog"
)

// newTrees tries the mechanisms from the best on.
func newTrees(asked Mechanism, guard *watchdog, logger *slog.Logger) (trees, error) {
	switch asked {
	case Cgroup:
		return newCgroups(guard, logger)
	case Mark:
		return newMarks(guard)
	case Group:
		return groupFactory{}, nil
	case Auto:
	default:
		return nil, fmt.Errorf("unknown mechanism %q", asked)
	}
	cgroups, noCgroup := newCgroups(guard, logger)
	if noCgroup == nil {
		return cgroups, nil
	}
	marks, noMark := newMarks(guard)
	if noMark == nil {
		logger.Info("shell tasks are tracked by a mark in their environment", "noCgroup", noCgroup)
		return marks, nil
	}
	return nil, errors.Join(noCgroup, noMark)
}
