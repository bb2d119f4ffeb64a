package node

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

var (
	// listedGPU and listedMIG match lines of `nvidia-smi -L`: a GPU, and below it each MIG device that it is split into.
	listedGPU = regexp.MustCompile(`^GPU (\d+): `)
	listedMIG = regexp.MustCompile(`^\s+MIG (\S+)\s+Device\s+(\d+): \(UUID: (MIG-[^)\s]+)\)`)
	// migMemory matches a line of the table of MIG devices that `nvidia-smi` prints: GPU, instances, device, memory in use and
	// in total.
	migMemory = regexp.MustCompile(`^\|\s+(\d+)\s+\d+\s+\d+\s+(\d+)\s+\|\s+(\d+)MiB\s*/\s*(\d+)MiB\s*\|`)
)

// migIndex returns the index of a MIG device among the GPUs of its node. It is above that of any GPU.
func migIndex(gpu, device string) int32 {
	parent, _ := strconv.Atoi(gpu)
	number, _ := strconv.Atoi(device)
	return int32(100*(parent+1) + number)
}

// replaceSplitGPUs replaces the GPUs that are split into MIG devices by these devices. list is the output of `nvidia-smi -L`, and
// table that of `nvidia-smi`, which has the memory of the devices.
func replaceSplitGPUs(gpus []*v1.GpuSnapshot, list, table []byte) []*v1.GpuSnapshot {
	used, total := map[int32]float64{}, map[int32]float64{}
	for line := range strings.Lines(string(table)) {
		if m := migMemory.FindStringSubmatch(line); m != nil {
			index := migIndex(m[1], m[2])
			used[index], total[index] = number(m[3]), number(m[4])
		}
	}
	var devices []*v1.GpuSnapshot
	split := map[int32]bool{}
	number, parent := "", (*v1.GpuSnapshot)(nil)
	for line := range strings.Lines(string(list)) {
		if m := listedGPU.FindStringSubmatch(line); m != nil {
			number, parent = m[1], nil
			if i := slices.IndexFunc(gpus, func(g *v1.GpuSnapshot) bool { return strconv.Itoa(int(g.GetIndex())) == number }); i >= 0 {
				parent = gpus[i]
			}
		}
		m := listedMIG.FindStringSubmatch(line)
		if m == nil || parent == nil {
			continue
		}
		split[parent.GetIndex()] = true
		index := migIndex(number, m[2])
		device := &v1.GpuSnapshot{Index: index, Name: parent.GetName() + " MIG " + m[1], MemoryMb: total[index], MemoryUsedMb: used[index], MigUuid: m[3]}
		if parent.NumaNode != nil {
			device.NumaNode = proto.Int32(parent.GetNumaNode())
		}
		devices = append(devices, device)
	}
	return append(slices.DeleteFunc(gpus, func(g *v1.GpuSnapshot) bool { return split[g.GetIndex()] }), devices...)
}
