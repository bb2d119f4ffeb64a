package node

import (
	"context"
	"testing"
	"testing/fstest"
	"time"

	"github.com/shirou/gopsutil/v3/cpu"
)

// TestUsageOfALimit checks that in a limited group the use refers to the limit, unless the use of
// the machine is higher.
func TestUsageOfALimit(t *testing.T) {
	v2 := func(usage string) fstest.MapFS {
		return fstest.MapFS{
			"devices/system/cpu/online":   {Data: []byte("0-3\n")},
			"fs/cgroup/job/cpu.max":       {Data: []byte("200000 100000\n")},
			"fs/cgroup/job/cpu.stat":      {Data: []byte("usage_usec " + usage + "000000\nuser_usec 1\n")},
			"fs/cgroup/job/step/cpu.max":  {Data: []byte("max 100000\n")},
			"fs/cgroup/job/step/cpu.stat": {Data: []byte("usage_usec 1\n")},
		}
	}
	v1 := func(usage string) fstest.MapFS {
		return fstest.MapFS{
			"devices/system/cpu/online":                {Data: []byte("0-3\n")},
			"fs/cgroup/cpu/job/cpu.cfs_quota_us":       {Data: []byte("200000\n")},
			"fs/cgroup/cpu/job/cpu.cfs_period_us":      {Data: []byte("100000\n")},
			"fs/cgroup/cpu/job/step/cpu.cfs_quota_us":  {Data: []byte("-1\n")},
			"fs/cgroup/cpuacct/job/cpuacct.usage":      {Data: []byte(usage + "000000000\n")},
			"fs/cgroup/cpuacct/job/step/cpuacct.usage": {Data: []byte("1\n")},
			"fs/cgroup/cpuacct/cpuacct.usage":          {Data: []byte("1\n")},
			"fs/cgroup/cpu/cpu.cfs_quota_us":           {Data: []byte("-1\n")},
		}
	}
	procV2 := fstest.MapFS{
		"self/cgroup":    {Data: []byte("0::/job/step\n")},
		"self/mountinfo": {Data: []byte("35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")},
	}
	procV1 := fstest.MapFS{
		"self/cgroup": {Data: []byte("5:cpuacct:/job/step\n4:cpu:/job/step\n0::/\n")},
		"self/mountinfo": {Data: []byte("35 24 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" +
			"36 24 0:31 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n")},
	}
	for name, test := range map[string]struct {
		proc fstest.MapFS
		sys  func(usage string) fstest.MapFS
		idle float64 // of 40 s on the machine
		want float64
	}{
		"version 2":               {procV2, v2, 30, 75},
		"version 1":               {procV1, v1, 30, 75},
		"others fill the machine": {procV2, v2, 4, 90},
	} {
		f := newFakeMachine()
		r := f.readers()
		r.Proc, r.Sys = test.proc, test.sys("100")
		r.CPUTimes = func(context.Context) ([]cpu.TimesStat, error) { return []cpu.TimesStat{f.times}, nil }
		// The readers are copied, so the tree must change in place.
		tree := r.Sys.(fstest.MapFS)
		p := NewProbe(ProbeOptions{Readers: r, Now: func() time.Time { return f.now }})
		p.Snapshot(t.Context())
		f.now = f.now.Add(10 * time.Second)
		f.times = cpu.TimesStat{User: 40 - test.idle, Idle: test.idle}
		for name, file := range test.sys("115") {
			tree[name] = file
		}
		if s := p.Snapshot(t.Context()).GetCpu(); s.GetUsagePercent() != test.want || s.GetCores() != 2 {
			t.Errorf("%s: %g%% of %d cores, want %g%% of 2", name, s.GetUsagePercent(), s.GetCores(), test.want)
		}
	}
}

// TestUsageOfACpuset checks that the use of processors that the process may not use does not count.
func TestUsageOfACpuset(t *testing.T) {
	f := newFakeMachine()
	r := f.readers()
	busy := []float64{0, 0, 0, 0}
	r.CPUTimes = func(context.Context) ([]cpu.TimesStat, error) {
		var times []cpu.TimesStat
		for i, b := range busy {
			times = append(times, cpu.TimesStat{CPU: "cpu" + string(rune('0'+i)), User: b, Idle: 10 - b})
		}
		if f.times.Idle == 0 { // first reading
			return make([]cpu.TimesStat, 4), nil
		}
		return times, nil
	}
	r.Proc = fstest.MapFS{
		"self/cgroup":    {Data: []byte("3:cpuset:/\n")},
		"self/mountinfo": {Data: []byte("35 24 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n")},
	}
	r.Sys = fstest.MapFS{
		"devices/system/cpu/online":    {Data: []byte("0-3\n")},
		"fs/cgroup/cpuset/cpuset.cpus": {Data: []byte("1,3\n")},
	}
	p := NewProbe(ProbeOptions{Readers: r, Now: func() time.Time { return f.now }})
	p.Snapshot(t.Context())
	f.now = f.now.Add(10 * time.Second)
	f.times.Idle, busy = 1, []float64{10, 2, 10, 4}
	if s := p.Snapshot(t.Context()).GetCpu(); s.GetUsagePercent() != 30 || s.GetCores() != 2 {
		t.Errorf("%g%% of %d cores, want 30%% of 2", s.GetUsagePercent(), s.GetCores())
	}
}
