package container

import "errors"

// process is the first process of a container, as this machine sees it; all others of
// the container end with it. The zero process is not known.
type process struct {
	pid int
	// started distinguishes it from a later process of its number.
	started string
}

// errNotHere says that a process is not known on this machine.
var errNotHere = errors.New("its process is not known on this machine")
