package taskrunner

import historyv1 "switchyard/proto/switchyard/history/v1"

// grantedGPUs returns the indexes of the GPUs that placement has granted to an attempt, for executor.Attempt. hasGPUs is
// that of the node. On a node with GPUs, an attempt without any gets an empty list, so that it cannot use the GPUs of
// others.
func grantedGPUs(req *historyv1.ExecuteRequest, hasGPUs func() bool) []int32 {
	if gpus := req.GetGpus(); len(gpus) > 0 || hasGPUs == nil || !hasGPUs() {
		return gpus
	}
	return []int32{}
}

// numaNode returns the NUMA node of an attempt for its workspace, or nil.
func numaNode(req *historyv1.ExecuteRequest) *int {
	if req.NumaNode == nil {
		return nil
	}
	return new(int(req.GetNumaNode()))
}
