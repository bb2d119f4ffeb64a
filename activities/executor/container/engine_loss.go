package container

import "sync"

// engineLoss records that the engine was lost while a container ran.
type engineLoss struct {
	once sync.Once
	lost chan struct{} // closed by mark
}

// mark marks the engine as lost while the container ran.
func (l *engineLoss) mark() { l.once.Do(func() { close(l.lost) }) }

// isMarked reports whether the engine was lost.
func (l *engineLoss) isMarked() bool {
	select {
	case <-l.lost:
		return true
	default:
		return false
	}
}
