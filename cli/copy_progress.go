package cli

import (
	"fmt"
	"sync"
	"time"
)

// progressInterval is the pause between two pictures of a copy.
const progressInterval = 200 * time.Millisecond

// copyProgress shows on a terminal how much has been copied. Elsewhere it shows nothing.
type copyProgress struct {
	sys   *system
	begun time.Time

	mu    sync.Mutex
	bytes int64
	drawn time.Time
	ended bool
}

func newCopyProgress(sys *system) *copyProgress {
	return &copyProgress{sys: sys, begun: time.Now(), drawn: time.Now(), ended: !sys.stderrTerminal}
}

// Write counts bytes of the archive.
func (p *copyProgress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes += int64(len(b))
	if now := time.Now(); !p.ended && now.Sub(p.drawn) >= progressInterval {
		p.drawn = now
		// The copy matters, its picture does not.
		_ = p.sys.screen.Draw([]string{copyText(p.bytes, now.Sub(p.begun))})
	}
	return len(b), nil
}

// end removes the picture.
func (p *copyProgress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		_ = p.sys.screen.Draw(nil)
		p.ended = true
	}
}

// copyText returns how much has been copied in a time.
func copyText(bytes int64, took time.Duration) string {
	const mib = 1 << 20
	copied := float64(bytes) / mib
	return fmt.Sprintf("copied %.1f MiB, %.1f MiB/s", copied, copied/max(took.Seconds(), 0.001))
}
