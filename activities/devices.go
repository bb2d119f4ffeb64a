package activities

import (
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// gpus are the GPUs of an attempt, for executor.Attempt. One that was given none,
// on a node that has some, sees none, so that it cannot take what others were
// given; but for one that came by the lane for tasks that use GPUs, which asks
// for a node with GPUs and holds none of its own.
func (n *Node) gpus(a *attempt) []int32 {
	if gpus := a.req.GetGpus(); len(gpus) > 0 || n.HasGPUs == nil || !n.HasGPUs() || a.gpuLane {
		return gpus
	}
	return []int32{}
}

// isGPULane tells whether a task queue is the node's lane for tasks that use GPUs.
func isGPULane(node, queue string) bool { return queue == names.NodeQueue(node, names.GPULane) }

// numaNode is the NUMA node of an attempt, for its workspace.
func numaNode(req *v1.ExecuteRequest) *int {
	if req.NumaNode == nil {
		return nil
	}
	return new(int(req.GetNumaNode()))
}
