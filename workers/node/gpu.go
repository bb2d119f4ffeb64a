package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// gpuInterval is the time between readings: nvidia-smi takes some 30 ms of a
	// processor, and seconds where the driver does not stay loaded.
	gpuInterval = 5 * time.Second
	// gpuLimit is how long a reading may take.
	gpuLimit = 10 * time.Second
	// commandDelay is how long a command that was killed may keep its output open.
	commandDelay = time.Second
)

// gpuQuery is what nvidia-smi is asked for each GPU.
var gpuQuery = []string{"--query-gpu=index,name,memory.total,memory.used,utilization.gpu,pci.bus_id", "--format=csv,noheader,nounits"}

// Command runs a program and returns its standard output. It fails with
// exec.ErrNotFound where there is no such program.
type Command func(ctx context.Context, name string, args ...string) ([]byte, error)

func systemCommand(ctx context.Context, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = commandDelay
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		// nvidia-smi says why on standard output.
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(append(out, exit.Stderr...))))
	}
	return out, err
}

// newGPUs returns what reads the GPUs of the machine.
func newGPUs(r Readers, now func() time.Time) *background[[]*v1.GpuSnapshot] {
	return &background[[]*v1.GpuSnapshot]{
		every: gpuInterval, limit: gpuLimit, now: now,
		read: func(ctx context.Context) ([]*v1.GpuSnapshot, error) { return readGPUs(ctx, r.Command, r.Sys) },
	}
}

// readGPUs asks nvidia-smi for the GPUs, by index. A machine without it has none.
func readGPUs(ctx context.Context, run Command, sys fs.FS) ([]*v1.GpuSnapshot, error) {
	out, err := run(ctx, "nvidia-smi", gpuQuery...)
	if errors.Is(err, exec.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi: %w", err)
	}
	return parseGPUs(out, sys)
}

// parseGPUs reads what nvidia-smi prints. A figure that it does not know, such
// as the utilisation of a GPU that is cut into MIG instances, is in brackets
// and becomes 0; a GPU whose very name it does not know, or leaves empty, is lost and left out.
func parseGPUs(out []byte, sys fs.FS) ([]*v1.GpuSnapshot, error) {
	var gpus []*v1.GpuSnapshot
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		// Nothing is quoted, so whatever is between the index and the last four is the name.
		f := strings.Split(line, ", ")
		tail := len(f) - 4
		index, err := strconv.ParseUint(f[0], 10, 31)
		if tail < 2 || err != nil {
			return nil, fmt.Errorf("nvidia-smi: not a line about a GPU: %q", line)
		}
		name := strings.Join(f[1:tail], ", ")
		if name = strings.TrimSpace(name); name == "" || strings.HasPrefix(name, "[") {
			continue
		}
		g := &v1.GpuSnapshot{
			Index: int32(index), Name: name,
			MemoryMb: max(number(f[tail]), 0), MemoryUsedMb: max(number(f[tail+1]), 0), UsagePercent: percent(number(f[tail+2])),
		}
		if node, ok := pciNUMA(sys, f[tail+3]); ok {
			g.NumaNode = proto.Int32(node)
		}
		gpus = append(gpus, g)
	}
	slices.SortFunc(gpus, func(a, b *v1.GpuSnapshot) int { return int(a.Index - b.Index) })
	return gpus, nil
}

// pciNUMA returns the NUMA node of a device; false when it has none, or the
// kernel does not know it, which it calls -1.
func pciNUMA(sys fs.FS, bus string) (int32, bool) {
	// nvidia-smi writes the domain with eight digits, 00000000:3B:00.0, the kernel with four.
	domain, rest, ok := strings.Cut(strings.ToLower(bus), ":")
	number, err := strconv.ParseUint(domain, 16, 32)
	if !ok || err != nil {
		return 0, false
	}
	b, err := fs.ReadFile(sys, path.Join("bus/pci/devices", fmt.Sprintf("%04x:%s", number, rest), "numa_node"))
	if err != nil {
		return 0, false
	}
	node, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 31)
	return int32(node), err == nil
}
