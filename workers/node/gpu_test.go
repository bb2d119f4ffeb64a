package node

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

const oneGPU = "0, NVIDIA L4, 23034, 5, 50, 00000000:01:00.0\n"

// TestReadingsOfGPUsMayHangOrFail lets the readings of the GPUs succeed, hang and fail. It checks that no
// heartbeat waits and that each kind of failure is logged once.
func TestReadingsOfGPUsMayHangOrFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := newFakeMachine()
		r := f.readers()
		var command Command
		r.Command = func(ctx context.Context, name string, args ...string) ([]byte, error) {
			return command(ctx, name, args...)
		}
		hang := func(ctx context.Context, _ string, _ ...string) ([]byte, error) {
			<-ctx.Done()
			return nil, errors.New("signal: killed")
		}
		says := func(out string, err error) Command {
			return func(context.Context, string, ...string) ([]byte, error) { return []byte(out), err }
		}
		command = hang
		began := time.Now()
		m := Measure(t.Context(), ProbeOptions{Readers: r, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if took := time.Since(began); took != firstGPUs {
			t.Errorf("waited %s for the first figures", took)
		}
		p := NewProbe(ProbeOptions{Readers: r, Machine: m, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		step := func(when string, c Command, gpus int) {
			t.Helper()
			synctest.Wait() // a reading that has begun keeps its command
			command = c
			for range 10 { // heartbeats
				began := time.Now()
				p.Snapshot(t.Context())
				if took := time.Since(began); took != 0 {
					t.Errorf("%s: a beat took %s", when, took)
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
			}
			if s := p.Snapshot(t.Context()); len(s.GetGpus()) != gpus || len(m.Total().GPUs) != gpus {
				t.Errorf("%s: %d GPUs, and %v on the ledger", when, len(s.GetGpus()), m.Total().GPUs)
			}
		}
		step("hangs from the start", hang, 0)
		step("answers", says(oneGPU, nil), 1)
		step("hangs", hang, 1)
		step("driver broken", says("", errors.New("exit status 9")), 0)
		step("answers again", says(oneGPU, nil), 1)
		step("odd answer", says("No devices were found\n", nil), 0)
		if lines := strings.Count(log.String(), "figure=GPUs"); lines != 1 {
			t.Errorf("%d log lines, want 1:\n%s", lines, log.String())
		}
		time.Sleep(time.Minute) // let the readings in progress end
	})
}

// TestGPUsAreReadOnce checks that the nodes of one machine share the readings: nvidia-smi runs once
// for all of them.
func TestGPUsAreReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeMachine()
		r := f.readers()
		ran := 0
		r.Command = func(context.Context, string, ...string) ([]byte, error) {
			ran++
			return []byte(oneGPU), nil
		}
		m := Measure(t.Context(), ProbeOptions{Readers: r})
		probes := []*Probe{NewProbe(ProbeOptions{Readers: r, Machine: m}), NewProbe(ProbeOptions{Readers: r, Machine: m})}
		for range 10 {
			for _, p := range probes {
				if s := p.Snapshot(t.Context()); len(s.GetGpus()) != 1 {
					t.Errorf("GPUs: %v", s.GetGpus())
				}
			}
			synctest.Wait()
			time.Sleep(time.Second)
		}
		if ran != 2 {
			t.Errorf("nvidia-smi ran %d times in 10 s, want 2", ran)
		}
	})
}

func FuzzParseGPUs(f *testing.F) {
	f.Add([]byte(oneGPU))
	f.Add([]byte("0, , 0, , , 0"))
	f.Add([]byte("0, NVIDIA A100, [N/A], [N/A], [N/A], 00000000:07:00.0\n\n3, [GPU is lost], x, NaN, 1e999, ::\n"))
	sys := fstest.MapFS{"bus/pci/devices/0000:01:00.0/numa_node": {Data: []byte("1\n")}}
	f.Fuzz(func(t *testing.T, out []byte) {
		gpus, err := parseGPUs(out, sys)
		if err != nil {
			return
		}
		for _, g := range gpus {
			if g.GetIndex() < 0 || g.GetName() == "" || !(g.GetMemoryMb() >= 0) || !(g.GetMemoryUsedMb() >= 0) || !(g.GetUsagePercent() >= 0 && g.GetUsagePercent() <= 100) {
				t.Errorf("%q: not a GPU: %v", out, g)
			}
		}
	})
}
