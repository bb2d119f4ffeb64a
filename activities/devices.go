package activities

import v1 "switchyard/proto/switchyard/v1"

// gpus are the GPUs of an attempt, for executor.Attempt. One that was given none,
// on a node that has some, sees none, so that it cannot take what others were
// given.
func (n *Node) gpus(a *attempt) []int32 {
	if gpus := a.req.GetGpus(); len(gpus) > 0 || n.HasGPUs == nil || !n.HasGPUs() {
		return gpus
	}
	return []int32{}
}

// numaNode is the NUMA node of an attempt, for its workspace.
func numaNode(req *v1.ExecuteRequest) *int {
	if req.NumaNode == nil {
		return nil
	}
	return new(int(req.GetNumaNode()))
}
