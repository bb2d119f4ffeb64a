package node

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v3/disk"

	v1 "switchyard/proto/switchyard/v1"
)

func (p *Probe) readDisk(ctx context.Context, now time.Time) *v1.DiskSnapshot {
	out := &v1.DiskSnapshot{}
	if u, err := p.readers.DiskUsage(ctx, p.dir); p.readable("disk", err) {
		out.TotalGb = float64(u.Total) / gib
		out.AvailableGb = float64(u.Free) / gib
		out.UsagePercent = percent(u.UsedPercent)
	}
	counters, err := p.readers.DiskIO(ctx)
	if !p.readable("disk counters", err) {
		return out
	}
	device := p.device(ctx)
	out.IoUtilPercent = p.disk.next(now, counters, 0, func(last, now map[string]disk.IOCountersStat, elapsed time.Duration) (float64, bool) {
		return ioUtil(last, now, elapsed, device), true
	})
	return out
}

// device returns the device of the working directory, as the counters name it, or "" if it is
// unknown, as on an overlay.
func (p *Probe) device(ctx context.Context) string {
	parts, err := p.readers.Partitions(ctx)
	if !p.readable("file systems", err) {
		return ""
	}
	dir, err := filepath.Abs(p.dir)
	if err != nil {
		return ""
	}
	best := disk.PartitionStat{}
	for _, part := range parts {
		// A later mount hides an earlier one at the same mount point.
		if under(dir, part.Mountpoint) && len(part.Mountpoint) >= len(best.Mountpoint) {
			best = part
		}
	}
	if !strings.HasPrefix(best.Device, "/dev/") {
		return ""
	}
	return strings.TrimPrefix(best.Device, "/dev/")
}

func under(dir, mountpoint string) bool {
	rel, err := filepath.Rel(mountpoint, dir)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// ioUtil returns the percentage of time in which the device had requests in progress. If the device
// has no counters, it returns the figure of the busiest physical device.
func ioUtil(last, now map[string]disk.IOCountersStat, elapsed time.Duration, device string) float64 {
	busy := func(name string) float64 {
		before, ok := last[name]
		after := now[name]
		if !ok || after.IoTime < before.IoTime {
			return 0
		}
		return percent(float64(after.IoTime-before.IoTime) / float64(elapsed.Milliseconds()) * 100)
	}
	for name, c := range now {
		// A device-mapper device is counted as dm-0, with the name from its path as label.
		if device != "" && (name == device || "mapper/"+c.Label == device) {
			return busy(name)
		}
	}
	most := 0.0
	for name := range now {
		if !virtualDisk(name) {
			most = max(most, busy(name))
		}
	}
	return most
}

func virtualDisk(name string) bool {
	for _, prefix := range []string{"loop", "ram", "zram"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
