//go:build !linux

package executor

import "time"

var epoch = time.Now()

// Now reads the monotonic clock of this process.
func Now() Instant { return Instant(time.Since(epoch)) }
