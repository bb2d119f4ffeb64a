package node

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

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
	// Machine that the node is on: it decides which GPUs are ours, and a measured
	// one is kept to the size that the probe sees. Nil: none.
	Machine *Machine
	// Labels of the node.
	Labels []string
	// Gaming are the rules by which games are detected; nil: DefaultGamingRules.
	Gaming *GamingRules
	// Dir is the working directory of the node; the disk figures are those of
	// the file system that holds it.
	Dir string
	// Readers are the sources of the figures; nil: SystemReaders.
	Readers *Readers
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Logger receives once each figure that cannot be read; nil: slog.Default.
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

	machine *Machine
	labels  []string
	gpus    *background[[]*v1.GpuSnapshot]

	mu     sync.Mutex
	warned map[string]struct{}
	groups *cgroups // nil: not looked for yet
	gaming *gaming
	game   string // sign of the game that is going on; empty: none is
	cpu    rate[cpuCounters]
	disk   rate[map[string]disk.IOCountersStat]
	net    rate[map[string]net.IOCountersStat]
}

// NewProbe returns a probe. It reads nothing yet.
func NewProbe(opts ProbeOptions) *Probe {
	p := &Probe{
		dir: opts.Dir, now: opts.Now, logger: opts.Logger, warned: map[string]struct{}{},
		machine: opts.Machine, labels: opts.Labels,
	}
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
	p.gpus = newGPUs(p.readers, p.now)
	use := func(int32) (bool, int64) { return false, 0 }
	if m := opts.Machine; m != nil {
		use = m.gpuUse
		if m.gpus != nil {
			p.gpus = m.gpus
		}
	}
	rules := opts.Gaming
	if rules == nil {
		rules = DefaultGamingRules()
	}
	p.gaming = newGaming(*rules, p.readers, p.now, use)
	return p
}

// Snapshot reads the figures of processors, memory, NUMA nodes, GPUs, disk and
// network, the labels, and the time; the rest of the snapshot is left to the
// caller. In a container the figures are those of its limits, with parts of a
// core left out.
//
// It waits neither for GPUs nor for the list of processes: it reports what the
// reading before found, so the first snapshot has no GPUs unless those of a
// measured Machine are there already. A figure that cannot be read is 0 (the
// number of processors falls back to what the Go runtime sees). On the first
// call, use of the processors is estimated from the load, and use of disk and
// network is 0.
func (p *Probe) Snapshot(ctx context.Context) *v1.NodeSnapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.groups == nil {
		groups := findCgroups(p.readers.Proc, p.readers.Sys)
		p.groups = &groups
	}
	s := &v1.NodeSnapshot{
		TakenAt: timestamppb.New(now),
		Cpu:     p.readCPU(ctx, now),
		Memory:  p.readMemory(ctx),
		Disk:    p.readDisk(ctx, now),
		Network: p.readNetwork(ctx, now),
		Numa:    numaNodes(p.readers.Sys, *p.groups),
	}
	gpus, reading, err := p.gpus.latest()
	if p.readable("GPUs", err) || errors.Is(err, context.DeadlineExceeded) {
		// Others may have the same figures, which are not changed any more.
		s.Gpus = gpus
	}
	sign, err := p.gaming.detect(now, gpus, reading)
	p.readable("processes", err)
	s.Gaming = sign != ""
	s.Labels = labels(p.labels, s.Gaming)
	p.played(sign)
	if p.machine != nil && p.machine.measured {
		p.machine.follow(sizeOf(s))
	}
	return s
}

// played logs when a game begins and ends.
func (p *Probe) played(sign string) {
	switch {
	case sign != "" && p.game == "":
		p.logger.Info("a user plays on this machine: label gaming is added", "sign", sign)
	case sign == "" && p.game != "":
		p.logger.Info("no user plays on this machine any more: label gaming is removed")
	}
	p.game = sign
}

func (p *Probe) readMemory(ctx context.Context) *v1.MemorySnapshot {
	out := &v1.MemorySnapshot{}
	if m, err := p.readers.Memory(ctx); p.readable("memory", err) {
		limit, left := p.groups.memory()
		out.TotalMb = min(float64(m.Total), limit) / mib
		out.AvailableMb = min(float64(m.Available), left) / mib
		if out.TotalMb > 0 {
			out.UsagePercent = percent(100 - out.AvailableMb/out.TotalMb*100)
		}
	}
	return out
}

// readable reports whether a figure was read, and logs the first time it was not.
func (p *Probe) readable(figure string, err error) bool {
	if err == nil {
		return true
	}
	if _, ok := p.warned[figure]; !ok {
		p.warned[figure] = struct{}{}
		p.logger.Warn("a figure of this machine cannot be read", "figure", figure, "error", err)
	}
	return false
}

func percent(x float64) float64 { return min(max(x, 0), 100) }
