package taskrunner

import (
	"cmp"
	"strconv"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// grantedGPUs returns the names of the GPUs that placement has granted to an attempt, for executor.Attempt. On a node with GPUs,
// an attempt without any gets an empty list, so that it cannot use the GPUs of others.
func (n *Node) grantedGPUs(req *historyv1.ExecuteRequest) []string {
	var named map[int32]string
	if n.GPUs != nil {
		named = n.GPUs()
	}
	if len(req.GetGpus()) == 0 && len(named) == 0 {
		return nil
	}
	granted := make([]string, len(req.GetGpus()))
	for i, index := range req.GetGpus() {
		granted[i] = cmp.Or(named[index], strconv.Itoa(int(index)))
	}
	return granted
}

// numaNode returns the NUMA node of an attempt for its workspace, or nil.
func numaNode(req *historyv1.ExecuteRequest) *int {
	if req.NumaNode == nil {
		return nil
	}
	return new(int(req.GetNumaNode()))
}
