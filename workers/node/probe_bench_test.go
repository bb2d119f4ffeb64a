package node

import (
	"os"
	"testing"
)

// BenchmarkSnapshot measures a heartbeat's snapshot: at one every 2 s, 20 ms are 1% of a core.
func BenchmarkSnapshot(b *testing.B) {
	p := NewProbe(ProbeOptions{Dir: b.TempDir()})
	for b.Loop() {
		p.Snapshot(b.Context())
	}
	p.gpus.wait(b.Context())
	p.gaming.processes.wait(b.Context())
}

// BenchmarkProcesses measures the check of the running programs, which happens every 10 s.
func BenchmarkProcesses(b *testing.B) {
	proc := os.DirFS("/proc")
	for b.Loop() {
		if _, err := procNames(b.Context(), proc); err != nil {
			b.Fatal(err)
		}
	}
}
