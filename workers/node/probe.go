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

// mib and gib convert bytes to the units of a snapshot.
const (
	mib = 1 << 20
	gib = 1 << 30
)

// ProbeOptions configures a Probe.
type ProbeOptions struct {
	// Machine is the machine of the node, or nil. It determines which GPUs our attempts use, and
	// the probe keeps the size of a measured machine up to date.
	Machine *Machine
	// Labels are the configured labels of the node.
	Labels []string
	// Gaming are the rules for detecting games. nil means DefaultGamingRules.
	Gaming *GamingRules
	// Dir is the working directory of the node. The disk figures are those of its file system.
	Dir string
	// Readers are the sources of the figures. nil means SystemReaders.
	Readers *Readers
	// Now is the clock. nil means time.Now.
	Now func() time.Time
	// Logger receives a warning, once for each figure, if the figure cannot be read. nil means
	// slog.Default.
	Logger *slog.Logger
}

// Probe measures the load of a machine. It is safe for concurrent use. Rates such as use and
// traffic are measured since the previous call, so each node needs a probe of its own.
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
	groups *cgroups // nil until the first snapshot
	gaming *gaming
	game   string // sign of the current game; "" if there is none
	cpu    rate[cpuCounters]
	disk   rate[map[string]disk.IOCountersStat]
	net    rate[map[string]net.IOCountersStat]
}

// NewProbe returns a probe. It measures nothing yet.
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

// Snapshot measures processors, memory, NUMA nodes, GPUs, disk and network, and adds the labels and
// the time. The caller fills in the rest of the snapshot. In a container the figures are those of
// its limits, with cores rounded down.
//
// Snapshot waits neither for the GPUs nor for the list of processes. It reports the result of the
// previous reading, so that the first snapshot has no GPUs unless a measured Machine has already
// read them. A figure that cannot be read is 0, except that the number of processors falls back to
// that of the Go runtime. In the first snapshot, the use of the processors is estimated from the
// load, and the use of disk and network is 0.
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
		// Other snapshots may share these figures, which are immutable.
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

// played logs the beginning and the end of a game.
func (p *Probe) played(sign string) {
	switch {
	case sign != "" && p.game == "":
		p.logger.Info("a user plays on this machine: label gaming is added", "sign", sign)
	case sign == "" && p.game != "":
		p.logger.Info("no user plays on this machine any longer: label gaming is removed")
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

// readable reports whether a figure was read, and logs its first failure.
func (p *Probe) readable(figure string, err error) bool {
	if err == nil {
		return true
	}
	if _, ok := p.warned[figure]; !ok {
		p.warned[figure] = struct{}{}
		p.logger.Warn("cannot read a measurement of this machine", "figure", figure, "error", err)
	}
	return false
}

func percent(x float64) float64 { return min(max(x, 0), 100) }
