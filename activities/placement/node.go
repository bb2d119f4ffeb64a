package placement

import (
	"container/list"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// node is a node that is present, or is gone while attempts still hold it.
type node struct {
	number  int // among all nodes
	class   int // what it has in common with others
	name    string
	tasks   int // that run on the node, or are on their way to it
	remotes int // that it has run elsewhere, such as in a cluster
	health  *health
	now     now
	machine *machine
	figures *figures // of the snapshot

	snap    *v1.NodeSnapshot
	state   string
	reason  string // for the state
	present bool
	round   uint64 // of the SetNodes that it was last part of
	gpus    []gpu
	numa    []numaNode

	claimed map[claimKey]*request
	perRun  map[string]int // tasks by run, ours and foreign
	byAge   *list.List     // held requests that take a slot, the oldest first

	priorities map[int32]int // held requests that take a slot, by priority
	reserved   bool          // in Queue.reserved
	wantedAt   uint64        // number of the level that wanted was found at
	wanted     bool          // something more urgent waits that could use the node

	foreign map[claimKey]grant    // running there, and not placed by this queue
	settled map[claimKey]released // released not long ago
	refused map[string]struct{}   // what it had no room for, by class.ask, since its snapshot

	lost map[string]struct{} // capabilities of what it does not find any more

	measured bool
	mean     time.Duration // of the time from assignment to release
}

// now is what each look at a node asks: kept together, because a large fleet
// does not fit into the caches of a processor.
type now struct {
	// From the snapshot.
	active          bool
	gaming          bool
	slots           int
	milliCores      int64
	memoryMB        int64
	availableMB     float64
	diskFreeGB      float64
	score, scoreGPU float64 // without tasks; where a GPU is asked for
	// From the machine.
	usedMilli int64
	freeMB    int64
}

// numaNode is a NUMA node of a machine.
type numaNode struct {
	index      int
	milliCores int64
	memoryMB   int64
}

// released is a claim that snapshots may continue to show for a while.
type released struct {
	at    time.Time
	grant grant
}

// read works out what is asked for often.
func (n *node) read(w *Weights) {
	n.figures = figuresOf(n.snap, w)
	cores := n.snap.GetCpu().GetCores()
	n.now = now{
		active:      n.state == v1.NodeActive,
		gaming:      n.snap.GetGaming(),
		slots:       int(n.snap.GetMaxParallel()),
		milliCores:  int64(cores) * 1000,
		memoryMB:    int64(n.snap.GetMemory().GetTotalMb()),
		availableMB: n.snap.GetMemory().GetAvailableMb(),
		diskFreeGB:  n.snap.GetDisk().GetAvailableGb(),
		score:       n.figures.sum(false),
		scoreGPU:    n.figures.sum(true),
	}
	if n.now.slots <= 0 {
		n.now.slots = max(int(cores), 4) // the default of a worker
	}
	n.gpus, n.numa = n.gpus[:0], n.numa[:0]
	for _, g := range n.snap.GetGpus() {
		of := gpu{index: g.GetIndex(), numa: noNUMA}
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
