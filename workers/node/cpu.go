package node

import (
	"context"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v3/cpu"

	v1 "switchyard/proto/switchyard/v1"
)

// cpuCounters holds counters of processor time.
type cpuCounters struct {
	// times is the sum over the processors that the process may use.
	times cpu.TimesStat
	// group is the control group with the tightest limit on processor time, or "" without a limit.
	// used is the time that the group has used, in seconds.
	group string
	used  float64
}

func (p *Probe) readCPU(ctx context.Context, now time.Time) *v1.CpuSnapshot {
	out := &v1.CpuSnapshot{}
	usable, listed := usableCPUs(p.readers.Sys, *p.groups)
	n := len(usable)
	if !listed {
		var err error
		if n, err = p.readers.Cores(ctx); !p.readable("processors", err) || n <= 0 {
			n = runtime.NumCPU()
		}
	}
	quota, group := p.groups.cpuQuota()
	share := min(float64(n), quota)
	// Round down to whole cores, so that no core is assigned that does not exist. A node with less
	// than one core still reports one, because it could run nothing otherwise.
	out.Cores = int32(max(math.Floor(share), 1))
	if avg, err := p.readers.Load(ctx); p.readable("load", err) {
		out.LoadAvg_1M = avg
	}
	first := percent(out.LoadAvg_1M / float64(n) * 100)
	times, err := p.readers.CPUTimes(ctx)
	if !p.readable("processor times", err) {
		out.UsagePercent = first
		return out
	}
	counters := cpuCounters{times: together(times, usable)}
	if quota < float64(n) {
		if used, ok := p.groups.cpuSeconds(group); ok {
			counters.group, counters.used = group, used
		}
	}
	out.UsagePercent = p.cpu.next(now, counters, first, func(last, now cpuCounters, elapsed time.Duration) (float64, bool) {
		return cpuUsage(last, now, elapsed, share)
	})
	return out
}

// together adds up the times of the given processors, or of all processors if only is empty.
func together(times []cpu.TimesStat, only []int32) cpu.TimesStat {
	var sum cpu.TimesStat
	for _, t := range times {
		index, err := strconv.ParseInt(strings.TrimPrefix(t.CPU, "cpu"), 10, 32)
		if len(only) > 0 && err == nil && !slices.Contains(only, int32(index)) {
			continue
		}
		sum.User += t.User
		sum.Nice += t.Nice
		sum.System += t.System
		sum.Irq += t.Irq
		sum.Softirq += t.Softirq
		sum.Steal += t.Steal
		sum.Idle += t.Idle
		sum.Iowait += t.Iowait
	}
	return sum
}

// cpuUsage returns the use of the processors in percent. If a limited control group has used more
// of its limit than the machine has of its processors, cpuUsage returns the use of the limit. share
// is the limit in cores. It returns false if no time has passed.
func cpuUsage(last, now cpuCounters, elapsed time.Duration, share float64) (float64, bool) {
	// Guest time is already part of user time.
	busy := func(t cpu.TimesStat) float64 {
		return t.User + t.Nice + t.System + t.Irq + t.Softirq + t.Steal
	}
	used := busy(now.times) - busy(last.times)
	all := used + now.times.Idle - last.times.Idle + now.times.Iowait - last.times.Iowait
	if all <= 0 {
		return 0, false
	}
	usage := percent(used / all * 100)
	if now.group != "" && now.group == last.group && now.used >= last.used {
		// The group may get its whole share although the machine is also busy with other work, but
		// not if the machine is full. The larger figure counts.
		usage = max(usage, percent((now.used-last.used)/elapsed.Seconds()/share*100))
	}
	return usage, true
}
