package node

import (
	"context"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// firstGPUs bounds how long Measure waits for nvidia-smi, which may have to load the driver first.
const firstGPUs = 5 * time.Second

// Measure returns the machine that this process runs on, with the size that a probe sees. In a
// container that is the limit of the container. Probes that get the machine in ProbeOptions.Machine
// keep the size up to date. Measure waits up to 5 s for the first reading of the GPUs; GPUs that
// appear later are added then.
func Measure(ctx context.Context, opts ProbeOptions) *Machine {
	m := NewMachine(Size{})
	m.measured = true
	opts.Machine, opts.Gaming = m, &GamingRules{} // the nodes' own probes detect games
	p := NewProbe(opts)
	m.gpus = p.gpus
	p.gpus.latest()
	wait, cancel := context.WithTimeout(ctx, firstGPUs)
	defer cancel()
	p.gpus.wait(wait)
	p.Snapshot(ctx)
	return m
}

// follow updates the size of a measured machine to the size that a probe has seen.
func (m *Machine) follow(size Size) {
	// A size without memory means that the figures could not be read.
	if size.MemoryMB > 0 && !size.equal(m.Total()) {
		m.Resize(size)
	}
}

// sizeOf returns the size of the machine in a snapshot.
func sizeOf(s *v1.NodeSnapshot) Size {
	size := Size{Cores: float64(s.GetCpu().GetCores()), MemoryMB: s.GetMemory().GetTotalMb()}
	for _, gpu := range s.GetGpus() {
		size.GPUs = append(size.GPUs, GPU{Index: gpu.GetIndex(), MemoryMB: int64(gpu.GetMemoryMb()), MIGUUID: gpu.GetMigUuid()})
	}
	for _, n := range s.GetNuma() {
		size.NUMA = append(size.NUMA, NUMASize{Index: n.GetIndex(), Cores: float64(len(n.GetCpus())), MemoryMB: n.GetMemoryTotalMb()})
	}
	return size
}
