package node

import (
	"context"
	"io/fs"
	"os"

	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/disk"
	"github.com/shirou/gopsutil/v3/load"
	"github.com/shirou/gopsutil/v3/mem"
	"github.com/shirou/gopsutil/v3/net"
)

// Readers provides the raw figures for a Probe. Counters must be monotonic.
type Readers struct {
	// Cores returns the number of logical processors. It is used if /sys does not list them.
	Cores func(context.Context) (int, error)
	// CPUTimes returns the times of each processor, named cpu0, cpu1 and so on.
	CPUTimes func(context.Context) ([]cpu.TimesStat, error)
	// Load returns the load average over one minute.
	Load func(context.Context) (float64, error)
	// Memory returns the memory figures of the machine.
	Memory func(context.Context) (*mem.VirtualMemoryStat, error)
	// DiskUsage returns the use of the file system that contains a path.
	DiskUsage func(ctx context.Context, path string) (*disk.UsageStat, error)
	// DiskIO returns counters by device name.
	DiskIO func(context.Context) (map[string]disk.IOCountersStat, error)
	// Partitions returns the mounted file systems.
	Partitions func(context.Context) ([]disk.PartitionStat, error)
	// NetIO returns counters by interface.
	NetIO func(context.Context) ([]net.IOCountersStat, error)
	// Interfaces returns the network interfaces with their flags.
	Interfaces func(context.Context) (net.InterfaceStatList, error)
	// Processes returns the names of the running programs.
	Processes func(context.Context) ([]string, error)
	// Command runs nvidia-smi.
	Command Command
	// Sys is the file system at /sys, and Proc the one at /proc. They are empty on a machine
	// without them.
	Sys, Proc fs.FS
}

// SystemReaders returns readers for the machine that the process runs on.
func SystemReaders() Readers {
	return Readers{
		Cores: func(ctx context.Context) (int, error) { return cpu.CountsWithContext(ctx, true) },
		CPUTimes: func(ctx context.Context) ([]cpu.TimesStat, error) {
			return cpu.TimesWithContext(ctx, true)
		},
		Load: func(ctx context.Context) (float64, error) {
			avg, err := load.AvgWithContext(ctx)
			if err != nil {
				return 0, err
			}
			return avg.Load1, nil
		},
		Memory:    mem.VirtualMemoryWithContext,
		DiskUsage: disk.UsageWithContext,
		DiskIO: func(ctx context.Context) (map[string]disk.IOCountersStat, error) {
			return disk.IOCountersWithContext(ctx)
		},
		Partitions: func(ctx context.Context) ([]disk.PartitionStat, error) {
			return disk.PartitionsWithContext(ctx, true)
		},
		NetIO: func(ctx context.Context) ([]net.IOCountersStat, error) {
			return net.IOCountersWithContext(ctx, true)
		},
		Interfaces: net.InterfacesWithContext,
		Processes:  systemProcesses,
		Command:    systemCommand(commandDelay),
		Sys:        os.DirFS("/sys"),
		Proc:       os.DirFS("/proc"),
	}
}
