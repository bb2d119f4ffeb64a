package container

import (
	"errors"
	"strconv"

	"switchyard/activities/executor/inside"
)

// process is the first process of a container, as this machine sees it; all others of
// the container end with it. The zero process is not known.
type process struct {
	pid int
	// started distinguishes it from a later process of its number.
	started string
}

// errNotHere says that a process is not known on this machine.
var errNotHere = errors.New("its process is not known on this machine")

// enterable returns the process as one to enter, or false if it is not known here.
func (p process) enterable() (inside.Process, bool) {
	ticks, err := strconv.Atoi(p.started)
	return inside.Process{PID: p.pid, Start: ticks}, err == nil && p.pid > 0
}
