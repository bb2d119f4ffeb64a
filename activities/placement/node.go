package placement

import (
	v1 "switchyard/proto/switchyard/v1"
)

// node is a node that is present, or that has left while attempts still hold something on it.
type node struct {
	number int // index in fleet.numbered
	class  int // number of its node class
	name   string
	health *health
	now    now
	holdings
	machine *machine
	figures *figures // of the snapshot

	snap    *v1.NodeSnapshot
	state   string
	reason  string // for the state, or ""
	present bool
	round   uint64 // number of the last fleet.replace that included the node
	gpus    []gpu
	numa    []numaNode
	lost    map[string]struct{} // found capabilities that the node has lost
	refused map[string]struct{} // values of spec.ask that the node had no room for since its snapshot

	guarded guarded
}

// now holds the values that every look at a node reads. They are kept together because a large
// fleet does not fit into the caches of a processor.
type now struct {
	// From the snapshot.
	active          bool
	gaming          bool
	refuses         bool // takes no tasks by its terms
	slots           int
	milliCores      int64
	memoryMB        int64
	availableMB     float64
	diskFreeGB      float64
	score, scoreGPU float64 // without the part for tasks; scoreGPU is for requests for GPUs
	// From the machine.
	usedMilli int64
	freeMB    int64
}

// numaNode is one NUMA node of a machine.
type numaNode struct {
	index      int
	milliCores int64
	memoryMB   int64
}

// refuse records that the node had no room for a request.
func (n *node) refuse(ask string) {
	if n.refused == nil {
		n.refused = map[string]struct{}{}
	}
	n.refused[ask] = struct{}{}
}

// read caches the values of the snapshot that are read often.
func (n *node) read(w *Weights) {
	n.figures = figuresOf(n.snap, w)
	cores := n.snap.GetCpu().GetCores()
	n.now = now{
		active:      n.state == v1.NodeActive,
		gaming:      n.snap.GetGaming(),
		refuses:     n.snap.GetRefusal() != "",
		slots:       int(n.snap.GetMaxParallel()),
		milliCores:  int64(cores) * 1000,
		memoryMB:    int64(n.snap.GetMemory().GetTotalMb()),
		availableMB: n.snap.GetMemory().GetAvailableMb(),
		diskFreeGB:  n.snap.GetDisk().GetAvailableGb(),
		score:       n.figures.sum(false),
		scoreGPU:    n.figures.sum(true),
	}
	if n.now.slots <= 0 {
		n.now.slots = max(int(cores), 4) // same default as in the worker
	}
	n.gpus, n.numa = n.gpus[:0], n.numa[:0]
	for _, g := range n.snap.GetGpus() {
		of := gpu{index: g.GetIndex(), numa: noNUMA, memoryMB: int64(g.GetMemoryMb()), model: foldModel(g.GetName())}
		if g.NumaNode != nil {
			of.numa = int(g.GetNumaNode())
		}
		n.gpus = append(n.gpus, of)
	}
	for _, p := range n.snap.GetNuma() {
		n.numa = append(n.numa, numaNode{
			index:      int(p.GetIndex()),
			milliCores: int64(len(p.GetCpus())) * 1000,
			memoryMB:   int64(p.GetMemoryTotalMb()),
		})
	}
}
