package container

import (
	"errors"
	"strconv"

	"switchyard/activities/executor/inside"
)

// process is the first process of a container, as seen on this machine; all others of
// the container end with it. The zero process is an unknown one.
type process struct {
	pid int
	// started is the start time, which distinguishes the process from a later one
	// with the same PID.
	started string
}

// errNotHere reports that a process is not known on this machine.
var errNotHere = errors.New("its process is not visible on this machine")

// enterable returns the process in the form that package inside enters, or false if
// it is not known here.
func (p process) enterable() (inside.Process, bool) {
	ticks, err := strconv.Atoi(p.started)
	return inside.Process{PID: p.pid, Start: ticks}, err == nil && p.pid > 0
}
