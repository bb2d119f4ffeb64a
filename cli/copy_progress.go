package cli

import (
	"fmt"
	"sync"
	"time"
)

// progressInterval is the shortest time between two redraws of the progress line.
const progressInterval = 200 * time.Millisecond

// copyProgress shows on a terminal how much has been copied. Without a terminal it shows nothing.
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

// Write counts the bytes of the archive.
func (p *copyProgress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes += int64(len(b))
	if now := time.Now(); !p.ended && now.Sub(p.drawn) >= progressInterval {
		p.drawn = now
		// A failure to draw must not fail the copy.
		_ = p.sys.screen.Draw([]string{copyText(p.bytes, now.Sub(p.begun))})
	}
	return len(b), nil
}

// end clears the progress line.
func (p *copyProgress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		_ = p.sys.screen.Draw(nil)
		p.ended = true
	}
}

// copyText returns the amount copied and the rate.
func copyText(bytes int64, took time.Duration) string {
	const mib = 1 << 20
	copied := float64(bytes) / mib
	return fmt.Sprintf("copied %.1f MiB, %.1f MiB/s", copied, copied/max(took.Seconds(), 0.001))
}
