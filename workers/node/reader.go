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

// Readers are where a Probe gets its raw figures from. Counters only grow.
type Readers struct {
	// Cores counts logical processors, where /sys does not list them.
	Cores func(context.Context) (int, error)
	// CPUTimes are the times of each processor; they are called cpu0, cpu1, ...
	CPUTimes func(context.Context) ([]cpu.TimesStat, error)
	// Load is the load average of one minute.
	Load func(context.Context) (float64, error)
	// Memory of the machine.
	Memory func(context.Context) (*mem.VirtualMemoryStat, error)
	// DiskUsage is the use of the file system that holds a path.
	DiskUsage func(ctx context.Context, path string) (*disk.UsageStat, error)
	// DiskIO are counters by device name.
	DiskIO func(context.Context) (map[string]disk.IOCountersStat, error)
	// Partitions are the mounted file systems.
	Partitions func(context.Context) ([]disk.PartitionStat, error)
	// NetIO are counters by interface.
	NetIO func(context.Context) ([]net.IOCountersStat, error)
	// Interfaces are the network interfaces with their flags.
	Interfaces func(context.Context) (net.InterfaceStatList, error)
	// Processes are the names of the programs that run.
	Processes func(context.Context) ([]string, error)
	// Command runs nvidia-smi.
	Command Command
	// Sys is the file system at /sys, Proc the one at /proc; empty where there is none.
	Sys, Proc fs.FS
}

// SystemReaders read the machine that the process runs on.
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
		Command:    systemCommand,
		Sys:        os.DirFS("/sys"),
		Proc:       os.DirFS("/proc"),
	}
}
