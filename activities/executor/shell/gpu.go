package shell

import (
	"maps"
	"os"
	"strconv"
	"strings"

	"switchyard/activities/executor"
)

// nvidia-cuda-mps-control has its pipes in usualMPSPipes unless mpsPipesVariable names another directory.
const (
	mpsPipesVariable = "CUDA_MPS_PIPE_DIRECTORY"
	usualMPSPipes    = "/tmp/nvidia-mps"
)

// withGPUs adds the variables that make the GPUs of an attempt visible to a task's environment, unless Binding.GPUs is nil. If
// the Multi-Process Service runs on the node, the variables also limit the program to its part of a GPU.
// See https://docs.nvidia.com/deploy/mps for the variables.
func (e *Executor) withGPUs(env map[string]string, b executor.Binding) map[string]string {
	if b.GPUs == nil {
		return env
	}
	env = maps.Clone(env)
	if env == nil {
		env = map[string]string{}
	}
	env["CUDA_VISIBLE_DEVICES"] = strings.Join(b.GPUs, ",")
	// The indices follow nvidia-smi; by default CUDA numbers the fastest GPU first.
	env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
	if info, err := os.Stat(e.mpsPipes); b.GPUPart == nil || err != nil || !info.IsDir() {
		return env
	}
	env[mpsPipesVariable] = e.mpsPipes
	if share := b.GPUPart.GetThousandths(); share > 0 {
		env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = strconv.Itoa(max(1, int(share)/10))
	}
	if memory := b.GPUPart.GetMemoryMb(); memory > 0 {
		env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = "0=" + strconv.Itoa(int(memory)) + "M" // the only visible device is device 0
	}
	return env
}
