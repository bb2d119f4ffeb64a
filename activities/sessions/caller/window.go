package caller

import "sync"

// window is a flow-control window: how many more bytes of input a client may send. A nil window is
// unlimited.
type window struct {
	mu     sync.Mutex
	change sync.Cond
	left   int
	closed bool
}

// newWindow returns a window of size bytes, or nil if size is 0.
func newWindow(size int) *window {
	if size == 0 {
		return nil
	}
	w := &window{left: size}
	w.change.L = &w.mu
	return w
}

// take waits until n bytes may be sent. It returns false if the window is closed.
func (w *window) take(n int) bool {
	if w == nil {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.left < n && !w.closed {
		w.change.Wait()
	}
	w.left -= n
	return !w.closed
}

// give allows n more bytes.
func (w *window) give(n int) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left += n
	w.change.Broadcast()
}

// close unblocks all callers of take.
func (w *window) close() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.change.Broadcast()
}
