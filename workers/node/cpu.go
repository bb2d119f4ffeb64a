package node

import (
	"context"
	"runtime"
	"time"

	"github.com/shirou/gopsutil/v3/cpu"

	v1 "switchyard/proto/switchyard/v1"
)

func (p *Probe) readCPU(ctx context.Context, now time.Time) *v1.CpuSnapshot {
	out := &v1.CpuSnapshot{}
	n, err := p.readers.Cores(ctx)
	if !p.readable("processors", err) || n <= 0 {
		n = runtime.NumCPU()
	}
	out.Cores = int32(n)
	if avg, err := p.readers.Load(ctx); p.readable("load", err) {
		out.LoadAvg_1M = avg
	}
	first := percent(out.LoadAvg_1M / float64(n) * 100)
	if times, err := p.readers.CPUTimes(ctx); p.readable("processor times", err) {
		out.UsagePercent = p.cpu.next(now, times, first, cpuUsage)
	} else {
		out.UsagePercent = first
	}
	return out
}

func cpuUsage(last, now cpu.TimesStat, _ time.Duration) (float64, bool) {
	// Guest time is part of user time already.
	busy := func(t cpu.TimesStat) float64 {
		return t.User + t.Nice + t.System + t.Irq + t.Softirq + t.Steal
	}
	used := busy(now) - busy(last)
	all := used + now.Idle - last.Idle + now.Iowait - last.Iowait
	if all <= 0 {
		return 0, false
	}
	return percent(used / all * 100), true
}
