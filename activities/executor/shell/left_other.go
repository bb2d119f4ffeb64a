//go:build !linux

package shell

import "switchyard/activities/executor"

func canLeaveHere(*watchdog) bool           { return false }
func (e *Executor) leaver() executor.Leaver { return nil }
func (e *Executor) leave(*running) bool     { return false }
