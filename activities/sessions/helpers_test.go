package sessions

import (
	"sync/atomic"
	"testing"
	"time"
)

// counter is an endless input that counts the bytes read from it.
type counter struct{ n atomic.Int64 }

func (c *counter) Read(p []byte) (int, error) {
	clear(p)
	c.n.Add(int64(len(p)))
	return len(p), nil
}

func (c *counter) get() int64 { return c.n.Load() }

// yield gives background work of the test time to proceed.
func yield(t *testing.T) {
	t.Helper()
	time.Sleep(50 * time.Millisecond)
}
