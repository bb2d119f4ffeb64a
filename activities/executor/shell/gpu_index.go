package shell

import (
	"maps"
	"strconv"
	"strings"
)

// withGPUs adds the variables that make GPUs visible to a task's environment, unless
// gpus is nil.
func withGPUs(env map[string]string, gpus []int32) map[string]string {
	if gpus == nil {
		return env
	}
	indices := make([]string, len(gpus))
	for i, gpu := range gpus {
		indices[i] = strconv.Itoa(int(gpu))
	}
	env = maps.Clone(env)
	if env == nil {
		env = map[string]string{}
	}
	env["CUDA_VISIBLE_DEVICES"] = strings.Join(indices, ",")
	// The indices follow nvidia-smi; by default CUDA numbers the fastest GPU first.
	env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
	return env
}
