package node

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/shirou/gopsutil/v3/mem"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/testing/protocmp"

	v1 "switchyard/proto/switchyard/v1"
)

// readMachine reads a machine from testdata: a txtar archive with the relevant files of /sys and
// /proc, the output of nvidia-smi, and the expected snapshot. The files are in archives because not
// every system allows colons in file names.
func readMachine(t *testing.T, name string) (files fstest.MapFS, r *Readers) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	files = fstest.MapFS{}
	current := ""
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "-- "); ok {
			current = strings.TrimSuffix(strings.TrimSpace(rest), " --")
			files[current] = &fstest.MapFile{}
		} else if current != "" {
			files[current].Data = append(files[current].Data, line...)
		}
	}
	below := func(dir string) fs.FS {
		sub, err := fs.Sub(files, dir)
		if err != nil {
			t.Fatal(err)
		}
		return sub
	}
	f := newFakeMachine()
	r = f.readers()
	r.Sys, r.Proc = below("sys"), below("proc")
	r.Cores = func(context.Context) (int, error) { return 3, nil } // used if /sys does not list the processors
	r.Memory = func(context.Context) (*mem.VirtualMemoryStat, error) {
		m := &mem.VirtualMemoryStat{Total: 1 << 30, Available: 1 << 29}
		if b, err := fs.ReadFile(files, "proc/meminfo"); err == nil {
			for line := range strings.Lines(string(b)) {
				switch f := strings.Fields(line); f[0] {
				case "MemTotal:":
					m.Total = uint64(number(f[1])) << 10
				case "MemAvailable:":
					m.Available = uint64(number(f[1])) << 10
				}
			}
		}
		return m, nil
	}
	r.Command = func(_ context.Context, name string, args ...string) ([]byte, error) {
		if out := files["nvidia-smi"]; out != nil && name == "nvidia-smi" {
			return out.Data, nil
		}
		return nil, exec.ErrNotFound
	}
	return files, r
}

// TestOddMachines reads captured trees of odd machines and compares the snapshots.
func TestOddMachines(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no machines: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			files, r := readMachine(t, name)
			want := &v1.NodeSnapshot{}
			if err := protojson.Unmarshal(files["want.json"].Data, want); err != nil {
				t.Fatal(err)
			}
			var m *Machine
			var s *v1.NodeSnapshot
			synctest.Test(t, func(t *testing.T) { // Measure waits for the GPUs, but not forever
				m = Measure(t.Context(), ProbeOptions{Readers: r, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
				s = NewProbe(ProbeOptions{Readers: r, Machine: m}).Snapshot(t.Context())
			})
			got := &v1.NodeSnapshot{
				Cpu:    &v1.CpuSnapshot{Cores: s.GetCpu().GetCores()},
				Memory: &v1.MemorySnapshot{TotalMb: s.GetMemory().GetTotalMb(), AvailableMb: s.GetMemory().GetAvailableMb()},
				Numa:   s.GetNuma(),
				Gpus:   s.GetGpus(),
			}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("snapshot (-want +got):\n%s", diff)
			}
			if size := m.Total(); !size.equal(sizeOf(want)) {
				t.Errorf("the ledger has %v, the snapshot %v", size, sizeOf(want))
			}
		})
	}
}
