package switchyardv1

// wholeGPU is the size of a GPU in thousandths.
const wholeGPU = 1000

// GPUUse is what attempts hold of one GPU. The zero value is a free GPU.
type GPUUse struct {
	// Whole is the number of attempts that hold the whole GPU; more than one is an error.
	Whole int
	// Thousandths and MemoryMB are the sums of the parts that attempts hold.
	Thousandths, MemoryMB int64
}

// Add adds an attempt that holds a part of the GPU, or all of it if the part is nil.
func (u *GPUUse) Add(p *GpuPart) { u.change(p, 1) }

// Remove undoes Add.
func (u *GPUUse) Remove(p *GpuPart) { u.change(p, -1) }

func (u *GPUUse) change(p *GpuPart, by int) {
	if p == nil {
		u.Whole += by
		return
	}
	u.Thousandths += int64(by) * int64(p.GetThousandths())
	u.MemoryMB += int64(by) * int64(p.GetMemoryMb())
}

// Free returns the thousandths that no attempt holds.
func (u GPUUse) Free() int64 {
	if u.Whole > 0 {
		return 0
	}
	return max(0, wholeGPU-u.Thousandths)
}

// Fits reports whether the GPU has room for a part, or is free if the part is nil. memoryMB is the size of its memory, or 0 if
// unknown: no part with memory fits then.
func (u GPUUse) Fits(p *GpuPart, memoryMB int64) bool {
	if p == nil {
		return u == GPUUse{}
	}
	return u.Whole == 0 && (p.GetThousandths() == 0 || u.Thousandths+int64(p.GetThousandths()) <= wholeGPU) &&
		(p.GetMemoryMb() == 0 || u.MemoryMB+int64(p.GetMemoryMb()) <= memoryMB)
}

// Share returns which fraction of a GPU the part is. A missing part is a whole GPU.
func (x *GpuPart) Share() float64 {
	if x == nil {
		return 1
	}
	return float64(x.GetThousandths()) / wholeGPU
}

// GPUAmount returns how many GPUs the task demands, with a part of one as a fraction.
func (x *TaskDemand) GPUAmount() float64 { return float64(x.GetGpus()) * x.GetGpuPart().Share() }

// FreeGPUs returns how many GPUs attempts leave free, with parts as fractions. A GPU has no more free than of its memory.
func FreeGPUs(gpus []*GpuSnapshot, running []*RunningAttempt) float64 {
	uses := map[int32]*GPUUse{}
	for _, a := range running {
		for _, index := range a.GetGpus() {
			if uses[index] == nil {
				uses[index] = &GPUUse{}
			}
			uses[index].Add(a.GetGpuPart())
		}
	}
	free := int64(0)
	for _, g := range gpus {
		use := uses[g.GetIndex()]
		switch {
		case use == nil:
			free += wholeGPU
		case use.MemoryMB > 0:
			memory := int64(g.GetMemoryMb())
			free += min(use.Free(), max(0, memory-use.MemoryMB)*wholeGPU/max(memory, 1))
		default:
			free += use.Free()
		}
	}
	return float64(free) / wholeGPU
}
