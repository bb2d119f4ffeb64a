//go:build unix

package shell

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor"
)

// cpuTime makes a benchmark also report the processor time of an operation in this
// process and its children, which is more meaningful on a busy machine. It is called
// first.
func cpuTime(b *testing.B) {
	used := func() (sum time.Duration) {
		for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
			var u unix.Rusage
			if err := unix.Getrusage(who, &u); err != nil {
				b.Fatal(err)
			}
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
		return sum
	}
	before := used()
	b.Cleanup(func() { b.ReportMetric(float64((used()-before).Microseconds())/float64(b.N), "cpu-us/op") })
}

// BenchmarkTrue compares `true` run through the executor, alone and in a batch, with
// the bare start of the program, and with os/exec, which neither contains, samples nor
// cleans up.
func BenchmarkTrue(b *testing.B) {
	b.Run("spawn", func(b *testing.B) {
		null, err := os.Open(os.DevNull)
		if err != nil {
			b.Fatal(err)
		}
		defer null.Close()
		cpuTime(b)
		for b.Loop() {
			p, err := os.StartProcess("/bin/sh", []string{"sh", "-c", "true"}, &os.ProcAttr{Files: []*os.File{null, null, null}, Env: os.Environ()})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := p.Wait(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("os_exec", func(b *testing.B) {
		cpuTime(b)
		for b.Loop() {
			var out, errs bytes.Buffer
			cmd := exec.Command("sh", "-c", "true")
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, m := range []Mechanism{Auto, portable, Group} {
		a := executor.Attempt{
			ID: "bench/true/c1", Spec: spec(b, map[string]any{"command": "true"}), Stdout: io.Discard, Stderr: io.Discard,
			Grace: time.Second, Lease: executor.NewLease(executor.Now(), time.Hour, time.Hour),
		}
		b.Run(string(m), func(b *testing.B) {
			e := newExecutor(b, Options{Mechanism: m, Watchdog: true})
			run := func() {
				if _, err := e.Run(b.Context(), a, func() {}); err != nil {
					b.Fatal(err)
				}
			}
			run()
			cpuTime(b)
			for b.Loop() {
				run()
			}
		})
		b.Run(string(m)+"_batch", func(b *testing.B) {
			row, err := newExecutor(b, Options{Mechanism: m, Watchdog: true}).Batch(a.ID, a.Lease)
			if err != nil {
				b.Fatal(err)
			}
			cpuTime(b)
			for b.Loop() {
				if _, err := row.Run(b.Context(), a, func() {}); err != nil {
					b.Fatal(err)
				}
			}
			if err := row.Close(); err != nil {
				b.Error(err)
			}
		})
	}
}
