package container

import (
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"

	"switchyard/activities/executor/inside"
)

// mainProcess is the first process of a container and the configuration with which it runs, as far as the engine has reported
// them. mu protects the fields below it.
type mainProcess struct {
	looked chan struct{} // closed when the lookup has ended; nil if there was no lookup

	mu sync.Mutex
	// first is the process, once it is known.
	first process
	// config is the container's configuration from the engine, or nil.
	config *container.Config
}

// record records the process and the configuration of a running container with an id.
func (m *mainProcess) record(id string, c container.InspectResponse) {
	first := findProcess(c.State.Pid, id)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.first, m.config = first, c.Config
}

// containerConfig returns the container's configuration from the engine. It is empty until the engine has reported it.
func (m *mainProcess) containerConfig() *container.Config {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.config == nil {
		return &container.Config{}
	}
	return m.config
}

// isWaitProgram reports whether the container's program is the one that only waits.
func (m *mainProcess) isWaitProgram() bool {
	return firstWord(m.containerConfig().Entrypoint) == waitPath
}

// process returns the first process of the container, or the zero process if it is unknown.
func (m *mainProcess) process() process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.first
}

// isKnown reports whether the process is known on this machine. It waits briefly for the lookup.
func (m *mainProcess) isKnown() bool {
	if m.looked != nil {
		select {
		case <-m.looked:
		case <-time.After(signalPatience):
			return false
		}
	}
	return m.process().pid > 0
}

// isAlive reports whether the process is known to be running.
func (m *mainProcess) isAlive() bool {
	if m.looked != nil {
		select {
		case <-m.looked:
		default:
			return false
		}
	}
	return m.process().alive()
}

// enterable returns the process to enter, or false if it is not known on this machine.
func (m *mainProcess) enterable() (inside.Process, bool) {
	if !m.isKnown() {
		return inside.Process{}, false
	}
	return m.process().enterable()
}
