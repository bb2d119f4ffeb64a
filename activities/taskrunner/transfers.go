package taskrunner

import (
	"sync"

	"switchyard/activities/sessions/wire"
)

// maxTransfers bounds the sessions for files that are open in an attempt at once. Each has a process on the node, which the limits
// of the attempt do not count.
const maxTransfers = 64

// isTransfer reports whether sessions of a kind are for files.
func isTransfer(kind string) bool {
	return kind == wire.KindSFTP || kind == wire.KindReadTar || kind == wire.KindWriteTar
}

// transfers counts the sessions for files of an attempt. Its methods may be called from several goroutines at once.
type transfers struct {
	mu   sync.Mutex
	open int
}

// begin counts a session until end, which may be called more than once, or reports false if there are as many as may be.
func (t *transfers) begin() (end func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open >= maxTransfers {
		return nil, false
	}
	t.open++
	return sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.open--
	}), true
}
