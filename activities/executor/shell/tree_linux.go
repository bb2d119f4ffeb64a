package shell

import (
	"errors"
	"fmt"
	"log/slog"
)

// newTreeFactory returns the factory of a mechanism, or for Auto of the best
// one that works.
func newTreeFactory(asked Mechanism, guard *watchdog, leaves bool, logger *slog.Logger) (treeFactory, error) {
	switch asked {
	case Cgroup:
		return newCgroups(guard, leaves, logger)
	case EnvMarker:
		return newMarks(guard, leaves)
	case Group:
		return groupFactory{}, nil
	case Auto:
	default:
		return nil, fmt.Errorf("unknown mechanism %q", asked)
	}
	cgroups, noCgroup := newCgroups(guard, leaves, logger)
	if noCgroup == nil {
		return cgroups, nil
	}
	marks, noMark := newMarks(guard, leaves)
	if noMark == nil {
		logger.Info("cgroups are unavailable; shell tasks are tracked by a marker in their environment", "noCgroup", noCgroup)
		return marks, nil
	}
	return nil, errors.Join(noCgroup, noMark)
}
