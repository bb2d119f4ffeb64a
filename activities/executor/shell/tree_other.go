//go:build !linux

package shell

import (
	"fmt"
	"log/slog"
)

func newTreeFactory(asked Mechanism, _ *watchdog, _ bool, _ *slog.Logger) (treeFactory, error) {
	if asked != Auto && asked != Group {
		return nil, fmt.Errorf("mechanism %q does not work on this system", asked)
	}
	return groupFactory{}, nil
}
