package node

import (
	"context"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// firstGPUs is how long Measure waits for nvidia-smi, which may first have to load the driver.
const firstGPUs = 5 * time.Second

// Measure returns the machine that the process runs on, with the size that a
// probe sees; in a container that is the container's limit. The probes of its
// nodes, when they are given it by ProbeOptions.Machine, keep it up to date.
// It takes as long as the GPUs take to be read, 5 s at most; later they are added
// when they show up.
func Measure(ctx context.Context, opts ProbeOptions) *Machine {
	m := NewMachine(Size{})
	m.measured = true
	opts.Machine, opts.Gaming = m, &GamingRules{} // games are for the nodes' own probes
	p := NewProbe(opts)
	m.gpus = p.gpus
	p.gpus.latest()
	wait, cancel := context.WithTimeout(ctx, firstGPUs)
	defer cancel()
	p.gpus.wait(wait)
	p.Snapshot(ctx)
	return m
}

// follow keeps a measured machine to the size that a probe has seen.
func (m *Machine) follow(size Size) {
	// Without memory it is not the size of a machine: the figures could not be read.
	if size.MemoryMB > 0 && !size.equal(m.Total()) {
		m.Resize(size)
	}
}

// sizeOf returns the size of the machine in a snapshot.
func sizeOf(s *v1.NodeSnapshot) Size {
	size := Size{Cores: float64(s.GetCpu().GetCores()), MemoryMB: s.GetMemory().GetTotalMb()}
	for _, gpu := range s.GetGpus() {
		size.GPUs = append(size.GPUs, gpu.GetIndex())
	}
	for _, n := range s.GetNuma() {
		size.NUMA = append(size.NUMA, NUMASize{Index: n.GetIndex(), Cores: float64(len(n.GetCpus())), MemoryMB: n.GetMemoryTotalMb()})
	}
	return size
}
