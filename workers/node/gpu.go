package node

import (
	"bytes"
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
	// gpuInterval is the time between readings. nvidia-smi takes about 30 ms of processor time, and
	// seconds if the driver does not stay loaded.
	gpuInterval = 5 * time.Second
	// gpuLimit bounds one reading.
	gpuLimit = 10 * time.Second
	// commandDelay is how long a killed command may keep its output open.
	commandDelay = 5 * time.Second
)

// gpuQuery are the arguments of nvidia-smi that select the figures of each GPU.
var gpuQuery = []string{"--query-gpu=index,name,memory.total,memory.used,utilization.gpu,pci.bus_id", "--format=csv,noheader,nounits"}

// Command runs a program and returns its standard output. It returns exec.ErrNotFound if the
// program does not exist.
type Command func(ctx context.Context, name string, args ...string) ([]byte, error)

// systemCommand returns a Command that waits, after the program has been killed, for children that keep its output open
// for no longer than delay.
func systemCommand(delay time.Duration) Command {
	return func(ctx context.Context, name string, args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.WaitDelay = delay
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		out, err := cmd.Output()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			// nvidia-smi prints error messages on standard output.
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(append(out, exit.Stderr...))))
		}
		return out, err
	}
}

// newGPUs returns the background reading of the machine's GPUs.
func newGPUs(r Readers, now func() time.Time) *background[[]*v1.GpuSnapshot] {
	return &background[[]*v1.GpuSnapshot]{
		every: gpuInterval, limit: gpuLimit, now: now,
		read: func(ctx context.Context) ([]*v1.GpuSnapshot, error) { return readGPUs(ctx, r.Command, r.Sys) },
	}
}

// readGPUs runs nvidia-smi and returns the GPUs ordered by index, with MIG devices in the place of the GPUs that are split into
// them. A machine without nvidia-smi has none.
func readGPUs(ctx context.Context, run Command, sys fs.FS) ([]*v1.GpuSnapshot, error) {
	out, err := run(ctx, "nvidia-smi", gpuQuery...)
	if errors.Is(err, exec.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi: %w", err)
	}
	gpus, err := parseGPUs(out, sys)
	// The load of a GPU that is split is unknown; without such a GPU the further calls are not worth their time.
	if err != nil || !bytes.Contains(out, []byte("[N/A]")) {
		return gpus, err
	}
	list, err := run(ctx, "nvidia-smi", "-L")
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi -L: %w", err)
	}
	table, err := run(ctx, "nvidia-smi")
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi: %w", err)
	}
	return replaceSplitGPUs(gpus, list, table), nil
}

// parseGPUs parses the output of nvidia-smi. A figure in brackets is unknown and becomes 0, such as
// the utilisation of a GPU that is split into MIG instances. A GPU whose name is unknown or empty
// is lost and skipped.
func parseGPUs(out []byte, sys fs.FS) ([]*v1.GpuSnapshot, error) {
	var gpus []*v1.GpuSnapshot
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		// Nothing is quoted, so the name is everything between the index and the last four fields.
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

// pciNUMA returns the NUMA node of a device, or false if the device has none or the kernel reports
// -1 for unknown.
func pciNUMA(sys fs.FS, bus string) (int32, bool) {
	// nvidia-smi prints the domain with eight digits, as in 00000000:3B:00.0; the kernel uses four.
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
