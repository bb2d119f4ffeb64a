//go:build !linux

package shell

import "log/slog"

// watchdog does nothing on systems other than Linux.
type watchdog struct{}

func newWatchdog(bool, *slog.Logger) *watchdog { return nil }
func (w *watchdog) ensure(treeFactory) error   { return nil }
func (w *watchdog) close() error               { return nil }
