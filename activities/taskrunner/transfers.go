package taskrunner

import (
	"sync"

	"switchyard/activities/sessions/wire"
)

// maxTransfers bounds the concurrent file sessions of an attempt. Each has a process on the node that the limits of the
// attempt do not count.
const maxTransfers = 64

// isTransfer reports whether sessions of a kind copy or serve files.
func isTransfer(kind string) bool {
	return kind == wire.KindSFTP || kind == wire.KindReadTar || kind == wire.KindWriteTar
}

// transfers counts the file sessions of an attempt. Its methods may be called from several goroutines at once.
type transfers struct {
	mu   sync.Mutex
	open int
}

// begin counts a session as open until end is called. end may be called more than once. begin returns false if the
// maximum is reached.
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
