package node

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/disk"
	"github.com/shirou/gopsutil/v3/net"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
)

// mib and gib turn bytes into the units of a snapshot.
const (
	mib = 1 << 20
	gib = 1 << 30
)

// ProbeOptions are the settings of a Probe.
type ProbeOptions struct {
	// Dir is the working directory of the node; the disk figures are those of
	// the file system that holds it.
	Dir string
	// Readers are the sources of the figures; nil: SystemReaders.
	Readers *Readers
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Logger is told once of each figure that cannot be read; nil: slog.Default.
	Logger *slog.Logger
}

// Probe reads how busy a machine is. Its methods may be called from several
// goroutines at once, but use, traffic and the like are those since the call
// before, so each node has a probe of its own.
type Probe struct {
	dir     string
	readers Readers
	now     func() time.Time
	logger  *slog.Logger

	mu     sync.Mutex
	warned map[string]struct{}
	cpu    rate[cpu.TimesStat]
	disk   rate[map[string]disk.IOCountersStat]
	net    rate[map[string]net.IOCountersStat]
}

// NewProbe returns a probe. It reads nothing yet.
func NewProbe(opts ProbeOptions) *Probe {
	p := &Probe{dir: opts.Dir, now: opts.Now, logger: opts.Logger, warned: map[string]struct{}{}}
	if opts.Readers != nil {
		p.readers = *opts.Readers
	} else {
		p.readers = SystemReaders()
	}
	if p.now == nil {
		p.now = time.Now
	}
	if p.logger == nil {
		p.logger = slog.Default()
	}
	return p
}

// Snapshot reads the figures of processors, memory, disk and network, and the
// time; the rest of the snapshot is left to the caller. It does not wait for
// anything. A figure that cannot be read is 0 (the number of processors falls
// back to what the Go runtime sees). On the first call, use of the processors
// is estimated from the load, and use of disk and network is 0.
func (p *Probe) Snapshot(ctx context.Context) *v1.NodeSnapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	return &v1.NodeSnapshot{
		TakenAt: timestamppb.New(now),
		Cpu:     p.readCPU(ctx, now),
		Memory:  p.readMemory(ctx),
		Disk:    p.readDisk(ctx, now),
		Network: p.readNetwork(ctx, now),
	}
}

func (p *Probe) readMemory(ctx context.Context) *v1.MemorySnapshot {
	out := &v1.MemorySnapshot{}
	if m, err := p.readers.Memory(ctx); p.readable("memory", err) {
		out.TotalMb = float64(m.Total) / mib
		out.AvailableMb = float64(m.Available) / mib
		if m.Total > 0 {
			out.UsagePercent = percent(100 - out.AvailableMb/out.TotalMb*100)
		}
	}
	return out
}

// readable tells whether a figure was read, and logs the first time it was not.
func (p *Probe) readable(figure string, err error) bool {
	if err == nil {
		return true
	}
	if _, ok := p.warned[figure]; !ok {
		p.warned[figure] = struct{}{}
		p.logger.Warn("figure of this machine cannot be read and is reported as 0", "figure", figure, "error", err)
	}
	return false
}

func percent(x float64) float64 { return min(max(x, 0), 100) }
