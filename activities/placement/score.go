package placement

import (
	"fmt"
	"strconv"

	v1 "switchyard/proto/switchyard/v1"
)

// Weights are the factors of a node's score. All except Task are multiplied with a percentage, so
// that a score without tasks is between 0 and 100 if these weights add up to 1.
type Weights struct {
	// CPU is the weight of the percentage of idle CPU.
	CPU float64
	// Memory is the weight of the percentage of available memory.
	Memory float64
	// Disk is the weight of the percentage of time in which the disk is idle.
	Disk float64
	// Network is the weight of the percentage of free bandwidth.
	Network float64
	// GPU is the weight of the mean percentage of idle GPU. It applies only to requests for GPUs.
	GPU float64
	// Task is subtracted for each task that runs on the node or is assigned to it.
	Task float64
	// Gaming is subtracted while a user plays a game on the machine.
	Gaming float64
}

// DefaultWeights returns the weights of the design.
func DefaultWeights() Weights {
	return Weights{CPU: 0.3, Memory: 0.3, Disk: 0.15, Network: 0.1, GPU: 0.15, Task: 5, Gaming: 40}
}

// forTasks returns the part of a score that tasks contribute. Without tasks it returns 0 and not
// -0.
func (w *Weights) forTasks(tasks int) float64 { return w.Task * float64(-tasks) }

// Part is one named part of a score.
type Part struct {
	// Name is cpu, memory, disk, network, gaming, gpu or tasks.
	Name string
	// Value is the part's contribution to the score.
	Value float64
}

// Sum returns the sum of the parts of a score.
func Sum(parts []Part) float64 {
	sum := 0.0
	for _, p := range parts {
		sum += p.Value
	}
	return sum
}

// figures holds the weighted parts of a score that depend only on the snapshot; higher is better. A
// figure that is missing from the snapshot contributes 0.
type figures struct {
	cpu, memory, disk, network, gpu float64
	gaming                          float64 // not positive
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
	if snap.GetGaming() {
		f.gaming -= w.Gaming
	}
	return &f
}

// sum returns the sum of the parts. gpu includes the part for GPUs.
func (f *figures) sum(gpu bool) float64 {
	sum := f.cpu + f.memory + f.disk + f.network + f.gaming
	if gpu {
		sum += f.gpu
	}
	return sum
}

// parts returns the parts of a node's score, where tasks is the part for tasks. gpu includes the
// part for GPUs.
func (f *figures) parts(gpu bool, tasks float64) []Part {
	parts := make([]Part, 0, 7)
	parts = append(parts,
		Part{Name: "cpu", Value: f.cpu},
		Part{Name: "memory", Value: f.memory},
		Part{Name: "disk", Value: f.disk},
		Part{Name: "network", Value: f.network},
	)
	if f.gaming != 0 {
		parts = append(parts, Part{Name: "gaming", Value: f.gaming})
	}
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

// percent clamps odd figures, such as traffic above the link speed, to the range of a percentage.
func percent(x float64) float64 { return min(max(x, 0), 100) }

// reckoning records why a request was assigned to its node, at the time of the assignment.
type reckoning struct {
	score   float64
	figures *figures
	tasks   float64 // part of the score for the tasks that were there before
	pinned  bool
}

// whyThere returns a short explanation of why an assigned request is on its node.
func (r *request) whyThere() string {
	w := &r.why
	if shared := r.class.workspace; shared != nil {
		return fmt.Sprintf("shares workspace %s on node %s, chosen by task %s", shared.GetName(), shared.GetNode(), shared.GetTask())
	}
	if w.pinned {
		return "pinned to " + r.place.node.name
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
