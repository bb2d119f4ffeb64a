package placement

import (
	"strconv"

	v1 "switchyard/proto/switchyard/v1"
)

// Weights are the factors of a node's score. All but Task are multiplied with a
// percentage, so that a score without tasks lies between 0 and 100 when they add up to 1.
type Weights struct {
	// CPU is multiplied with the percentage of idle CPU.
	CPU float64
	// Memory is multiplied with the percentage of available memory.
	Memory float64
	// Disk is multiplied with the percentage of time in which the disk is idle.
	Disk float64
	// Network is multiplied with the percentage of free bandwidth.
	Network float64
	// GPU is multiplied with the mean percentage of idle GPU, where a GPU is asked for.
	GPU float64
	// Task is taken off for each task that runs on the node or was assigned to it.
	Task float64
}

// DefaultWeights are those of the design.
func DefaultWeights() Weights {
	return Weights{CPU: 0.3, Memory: 0.3, Disk: 0.15, Network: 0.1, GPU: 0.15, Task: 5}
}

// forTasks is the part of a score that tasks add: 0, and not -0, without any.
func (w *Weights) forTasks(tasks int) float64 { return w.Task * float64(-tasks) }

// Part is one named part of a score.
type Part struct {
	// Name of the part: cpu, memory, disk, network, gpu or tasks.
	Name string
	// Value that it adds to the score.
	Value float64
}

// Sum adds up the parts of a score.
func Sum(parts []Part) float64 {
	sum := 0.0
	for _, p := range parts {
		sum += p.Value
	}
	return sum
}

// figures are the parts of a score that depend on the snapshot alone, weighted;
// higher is better. A figure that the snapshot does not have adds 0.
type figures struct {
	cpu, memory, disk, network, gpu float64
}

func figuresOf(snap *v1.NodeSnapshot, w *Weights) *figures {
	cpu, memory, disk, network := snap.GetCpu(), snap.GetMemory(), snap.GetDisk(), snap.GetNetwork()
	var f figures
	if cpu.GetCores() > 0 {
		f.cpu = w.CPU * percent(100-cpu.GetUsagePercent())
	}
	if total := memory.GetTotalMb(); total > 0 {
		f.memory = w.Memory * percent(memory.GetAvailableMb()/total*100)
	}
	if disk.GetTotalGb() > 0 {
		f.disk = w.Disk * percent(100-disk.GetIoUtilPercent())
	}
	if bandwidth := network.GetBandwidthMbps(); bandwidth > 0 {
		f.network = w.Network * percent((bandwidth-network.GetThroughputMbps())/bandwidth*100)
	}
	f.gpu = w.GPU * idleGPU(snap)
	return &f
}

// sum is the sum of the parts without that of the tasks.
func (f *figures) sum(gpu bool) float64 {
	sum := f.cpu + f.memory + f.disk + f.network
	if gpu {
		sum += f.gpu
	}
	return sum
}

// parts are the parts of the score of a node with tasks that add so much; that of
// the GPUs is there only where one is asked for.
func (f *figures) parts(gpu bool, tasks float64) []Part {
	parts := make([]Part, 0, 6)
	parts = append(parts,
		Part{Name: "cpu", Value: f.cpu},
		Part{Name: "memory", Value: f.memory},
		Part{Name: "disk", Value: f.disk},
		Part{Name: "network", Value: f.network},
	)
	if gpu {
		parts = append(parts, Part{Name: "gpu", Value: f.gpu})
	}
	return append(parts, Part{Name: "tasks", Value: tasks})
}

func idleGPU(snap *v1.NodeSnapshot) float64 {
	if len(snap.GetGpus()) == 0 {
		return 0
	}
	sum := 0.0
	for _, g := range snap.GetGpus() {
		sum += percent(100 - g.GetUsagePercent())
	}
	return sum / float64(len(snap.GetGpus()))
}

// percent keeps odd figures, such as traffic above the link speed, in range.
func percent(x float64) float64 { return min(max(x, 0), 100) }

// reckoning is why a request was given to its node, as of then.
type reckoning struct {
	score   float64
	figures *figures
	tasks   float64 // what those that were there before add to the score
	pinned  bool
}

// whyThere says in a few words why an assigned request is where it is.
func (r *request) whyThere() string {
	w := &r.why
	if w.pinned {
		return "pinned to " + r.node.name
	}
	gpu := r.class.need.gpus > 0
	b := make([]byte, 0, 96)
	b = append(b, "score "...)
	b = strconv.AppendFloat(b, w.score, 'f', 1, 64)
	between := ": "
	for _, p := range w.figures.parts(gpu, w.tasks) {
		b = append(append(b, between...), p.Name...)
		b = strconv.AppendFloat(append(b, ' '), p.Value, 'f', 1, 64)
		between = ", "
	}
	return string(b)
}
