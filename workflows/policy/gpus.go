package policy

import (
	"math"

	v1 "switchyard/proto/switchyard/v1"
)

// GPUs is what a task asks of the GPUs of its node.
type GPUs struct {
	// Count is the number of GPUs: 1 for a part of one, 0 for none.
	Count int
	// Part is the part of the one GPU, or nil for whole ones.
	Part *v1.GpuPart
}

// GPUsOf returns what a task asks of GPUs in its resources. It reads the field that earlier versions of clients send, too.
func GPUsOf(res *v1.Resources) GPUs {
	asked := res.GetGpus()
	if asked == 0 {
		asked = float64(res.GetWholeGpus())
	}
	if asked >= 1 || asked == 0 && res.GetGpuMemoryMb() == 0 {
		return GPUs{Count: int(asked)}
	}
	return GPUs{Count: 1, Part: &v1.GpuPart{Thousandths: int32(math.Round(asked * 1000)), MemoryMb: res.GetGpuMemoryMb()}}
}
