package node

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/disk"
	"github.com/shirou/gopsutil/v3/mem"
	"github.com/shirou/gopsutil/v3/net"
	"google.golang.org/protobuf/testing/protocmp"

	v1 "switchyard/proto/switchyard/v1"
)

// fakeMachine is a machine whose figures a test controls.
type fakeMachine struct {
	now        time.Time
	times      cpu.TimesStat
	io         map[string]disk.IOCountersStat
	partitions []disk.PartitionStat
	traffic    []net.IOCountersStat
	interfaces net.InterfaceStatList
	sys        fstest.MapFS
}

func newFakeMachine() *fakeMachine {
	up := []string{"up", "broadcast"}
	return &fakeMachine{
		now:        time.Unix(1_700_000_000, 0),
		io:         map[string]disk.IOCountersStat{"sda": {}, "sda1": {}, "loop0": {}},
		partitions: []disk.PartitionStat{{Device: "/dev/sda1", Mountpoint: "/"}},
		traffic:    []net.IOCountersStat{{Name: "lo"}, {Name: "eth0"}, {Name: "docker0"}},
		interfaces: net.InterfaceStatList{
			{Name: "lo", Flags: []string{"up", "loopback"}}, {Name: "eth0", Flags: up}, {Name: "docker0", Flags: up}, {Name: "eth1"},
		},
		sys: fstest.MapFS{
			"class/net/eth0/device":   {Mode: fs.ModeDir},
			"class/net/eth0/speed":    {Data: []byte("1000\n")},
			"class/net/docker0/speed": {Data: []byte("10000\n")},
		},
	}
}

func (f *fakeMachine) readers() *Readers {
	return &Readers{
		Cores:    func(context.Context) (int, error) { return 4, nil },
		CPUTimes: func(context.Context) ([]cpu.TimesStat, error) { return []cpu.TimesStat{f.times}, nil },
		Load:     func(context.Context) (float64, error) { return 1, nil },
		Memory: func(context.Context) (*mem.VirtualMemoryStat, error) {
			return &mem.VirtualMemoryStat{Total: 8 << 30, Available: 2 << 30}, nil
		},
		DiskUsage: func(context.Context, string) (*disk.UsageStat, error) {
			return &disk.UsageStat{Total: 100 << 30, Free: 25 << 30, UsedPercent: 75}, nil
		},
		DiskIO:     func(context.Context) (map[string]disk.IOCountersStat, error) { return f.io, nil },
		Partitions: func(context.Context) ([]disk.PartitionStat, error) { return f.partitions, nil },
		NetIO:      func(context.Context) ([]net.IOCountersStat, error) { return f.traffic, nil },
		Interfaces: func(context.Context) (net.InterfaceStatList, error) { return f.interfaces, nil },
		Processes:  func(context.Context) ([]string, error) { return nil, nil },
		Command:    func(context.Context, string, ...string) ([]byte, error) { return nil, exec.ErrNotFound },
		Sys:        f.sys,
		Proc:       fstest.MapFS{},
	}
}

func (f *fakeMachine) probe(t *testing.T) *Probe {
	return NewProbe(ProbeOptions{
		Dir: "/data/dir", Readers: f.readers(), Now: func() time.Time { return f.now }, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
}

func TestSnapshot(t *testing.T) {
	f := newFakeMachine()
	p := f.probe(t)
	compare := func(name string, got, want *v1.NodeSnapshot) {
		t.Helper()
		opts := cmp.Options{protocmp.Transform(), protocmp.IgnoreFields(&v1.NodeSnapshot{}, "taken_at"), cmpopts.EquateApprox(0, 1e-9)}
		if diff := cmp.Diff(want, got, opts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	want := &v1.NodeSnapshot{
		Cpu:     &v1.CpuSnapshot{Cores: 4, UsagePercent: 25, LoadAvg_1M: 1},
		Memory:  &v1.MemorySnapshot{TotalMb: 8192, AvailableMb: 2048, UsagePercent: 75},
		Disk:    &v1.DiskSnapshot{TotalGb: 100, AvailableGb: 25, UsagePercent: 75},
		Network: &v1.NetworkSnapshot{BandwidthMbps: 1000},
	}
	compare("first", p.Snapshot(t.Context()), want)

	f.now = f.now.Add(2 * time.Second)
	f.times = cpu.TimesStat{User: 3, System: 1, Steal: 0.8, Idle: 3, Iowait: 0.2, Guest: 3}
	f.io = map[string]disk.IOCountersStat{"sda": {IoTime: 1900}, "sda1": {IoTime: 500}, "loop0": {IoTime: 2000}}
	f.traffic = []net.IOCountersStat{
		{Name: "lo", BytesSent: 1e9, BytesRecv: 1e9}, {Name: "eth0", BytesSent: 10e6, BytesRecv: 40e6}, {Name: "docker0", BytesSent: 40e6},
	}
	want.Cpu.UsagePercent, want.Disk.IoUtilPercent, want.Network.ThroughputMbps = 60, 25, 200
	compare("second", p.Snapshot(t.Context()), want)

	f.now = f.now.Add(time.Millisecond)
	f.io = map[string]disk.IOCountersStat{"sda1": {IoTime: 501}}
	compare("too soon to tell", p.Snapshot(t.Context()), want)

	f.now = f.now.Add(time.Second)
	f.times = cpu.TimesStat{User: 5, System: 1, Steal: 0.8, Idle: 3, Iowait: 2.2}
	f.io = map[string]disk.IOCountersStat{"sda1": {IoTime: 10}}
	f.traffic = []net.IOCountersStat{{Name: "eth0", BytesSent: 5}}
	want.Cpu.UsagePercent, want.Disk.IoUtilPercent, want.Network.ThroughputMbps = 50, 0, 0
	compare("counters started again", p.Snapshot(t.Context()), want)
}

func TestDeviceOfDirectory(t *testing.T) {
	tests := map[string]struct {
		partitions []disk.PartitionStat
		want       float64
	}{
		"nearest mount":       {[]disk.PartitionStat{{Device: "/dev/sda1", Mountpoint: "/"}, {Device: "/dev/sdb", Mountpoint: "/data"}}, 20},
		"not a parent":        {[]disk.PartitionStat{{Device: "/dev/sda1", Mountpoint: "/"}, {Device: "/dev/sdb", Mountpoint: "/data/di"}}, 10},
		"later mount hides":   {[]disk.PartitionStat{{Device: "/dev/sdb", Mountpoint: "/data"}, {Device: "/dev/sda1", Mountpoint: "/data"}}, 10},
		"mapped":              {[]disk.PartitionStat{{Device: "/dev/mapper/vg-data", Mountpoint: "/"}}, 30},
		"overlay: busiest":    {[]disk.PartitionStat{{Device: "overlay", Mountpoint: "/"}}, 30},
		"no counters of it":   {[]disk.PartitionStat{{Device: "/dev/nvme9", Mountpoint: "/"}}, 30},
		"no partitions known": {nil, 30},
	}
	for name, tt := range tests {
		f := newFakeMachine()
		f.partitions = tt.partitions
		f.io = map[string]disk.IOCountersStat{"sda1": {}, "sdb": {}, "dm-0": {Label: "vg-data"}, "zram0": {}}
		p := f.probe(t)
		p.Snapshot(t.Context())
		f.now = f.now.Add(time.Second)
		f.io = map[string]disk.IOCountersStat{
			"sda1": {IoTime: 100}, "sdb": {IoTime: 200}, "dm-0": {IoTime: 300, Label: "vg-data"}, "zram0": {IoTime: 900},
		}
		if got := p.Snapshot(t.Context()).GetDisk().GetIoUtilPercent(); got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

func TestLinks(t *testing.T) {
	tests := map[string]struct {
		change func(*fakeMachine)
		want   float64
	}{
		"hardware only":         {func(*fakeMachine) {}, 1000},
		"no hardware to be had": {func(f *fakeMachine) { delete(f.sys, "class/net/eth0/device") }, 11000},
		"virtual":               {func(f *fakeMachine) { f.sys["class/net/eth0/speed"].Data = []byte("-1\n") }, 0},
		"no speed":              {func(f *fakeMachine) { delete(f.sys, "class/net/eth0/speed") }, 0},
		"odd speed":             {func(f *fakeMachine) { f.sys["class/net/eth0/speed"].Data = []byte("NaN") }, 0},
		"no interfaces":         {func(f *fakeMachine) { f.interfaces = nil }, 0},
	}
	for name, tt := range tests {
		f := newFakeMachine()
		tt.change(f)
		if got := f.probe(t).Snapshot(t.Context()).GetNetwork().GetBandwidthMbps(); got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

// TestNothingReadable checks that a machine without readable figures still has a snapshot, and logs
// each figure once.
func TestNothingReadable(t *testing.T) {
	bad := errors.New("cannot be read")
	var log bytes.Buffer
	p := NewProbe(ProbeOptions{
		Now:    func() time.Time { return time.Unix(1, 0) },
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Readers: &Readers{
			Cores:      func(context.Context) (int, error) { return 0, bad },
			CPUTimes:   func(context.Context) ([]cpu.TimesStat, error) { return nil, bad },
			Load:       func(context.Context) (float64, error) { return 0, bad },
			Memory:     func(context.Context) (*mem.VirtualMemoryStat, error) { return nil, bad },
			DiskUsage:  func(context.Context, string) (*disk.UsageStat, error) { return nil, bad },
			DiskIO:     func(context.Context) (map[string]disk.IOCountersStat, error) { return nil, bad },
			Partitions: func(context.Context) ([]disk.PartitionStat, error) { return nil, bad },
			NetIO:      func(context.Context) ([]net.IOCountersStat, error) { return nil, bad },
			Interfaces: func(context.Context) (net.InterfaceStatList, error) { return nil, bad },
			Processes:  func(context.Context) ([]string, error) { return nil, bad },
			Command:    func(context.Context, string, ...string) ([]byte, error) { return nil, bad },
			Sys:        fstest.MapFS{},
			Proc:       fstest.MapFS{},
		},
	})
	for range 3 {
		got := p.Snapshot(t.Context())
		p.gpus.wait(t.Context())
		p.gaming.processes.wait(t.Context())
		if got.GetCpu().GetCores() < 1 || got.GetCpu().GetUsagePercent() != 0 || got.GetMemory().GetTotalMb() != 0 || got.GetNetwork() == nil {
			t.Errorf("got %v", got)
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines != 9 {
		t.Errorf("%d log lines, want one for each of 9 figures:\n%s", lines, log.String())
	}
}

// TestRealMachine checks the snapshot of the machine that runs the test.
func TestRealMachine(t *testing.T) {
	p := NewProbe(ProbeOptions{Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	for range 2 {
		s := p.Snapshot(t.Context())
		t.Log(s)
		if s.GetCpu().GetCores() < 1 || s.GetMemory().GetTotalMb() <= 0 || s.GetMemory().GetAvailableMb() > s.GetMemory().GetTotalMb() ||
			s.GetDisk().GetTotalGb() <= 0 || s.GetTakenAt() == nil {
			t.Errorf("not the snapshot of a machine: %v", s)
		}
	}
	p.gpus.wait(t.Context())
	p.gaming.processes.wait(t.Context())
}
