package placement

import (
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

// Part is one named part of a score.
type Part struct {
	// Name of the part: cpu, memory, disk, network, gpu or tasks.
	Name string
	// Value that it adds to the score.
	Value float64
}

// Score returns the parts of a node's score; higher is better. A figure that
// the snapshot does not have adds 0. tasks is the number of tasks that run on
// the node or were assigned to it; the part gpu is there only when gpu is set.
func Score(snap *v1.NodeSnapshot, tasks int, gpu bool, w Weights) []Part {
	return append(figures(snap, gpu, w), taskPart(tasks, w))
}

// Sum adds up the parts of a score.
func Sum(parts []Part) float64 {
	sum := 0.0
	for _, p := range parts {
		sum += p.Value
	}
	return sum
}

func taskPart(tasks int, w Weights) Part {
	return Part{Name: "tasks", Value: -w.Task * float64(tasks)}
}

// figures are the parts that depend on the snapshot alone.
func figures(snap *v1.NodeSnapshot, gpu bool, w Weights) []Part {
	cpu, memory, disk, network := snap.GetCpu(), snap.GetMemory(), snap.GetDisk(), snap.GetNetwork()
	var idleCPU, freeMemory, idleDisk, freeNetwork float64
	if cpu.GetCores() > 0 {
		idleCPU = percent(100 - cpu.GetUsagePercent())
	}
	if total := memory.GetTotalMb(); total > 0 {
		freeMemory = percent(memory.GetAvailableMb() / total * 100)
	}
	if disk.GetTotalGb() > 0 {
		idleDisk = percent(100 - disk.GetIoUtilPercent())
	}
	if bandwidth := network.GetBandwidthMbps(); bandwidth > 0 {
		freeNetwork = percent((bandwidth - network.GetThroughputMbps()) / bandwidth * 100)
	}
	parts := make([]Part, 0, 6)
	parts = append(parts,
		Part{Name: "cpu", Value: w.CPU * idleCPU},
		Part{Name: "memory", Value: w.Memory * freeMemory},
		Part{Name: "disk", Value: w.Disk * idleDisk},
		Part{Name: "network", Value: w.Network * freeNetwork},
	)
	if gpu {
		parts = append(parts, Part{Name: "gpu", Value: w.GPU * idleGPU(snap)})
	}
	return parts
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
