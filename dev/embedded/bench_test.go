package embedded

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.temporal.io/server/common/dynamicconfig"
)

// The benchmarks print what the tuning improves. No test asserts the figures, because machines differ. Run them with:
// go test ./dev/embedded -run '^$' -bench . -benchtime 3x

// stock returns the default settings, except for those that would call the internet or outlive the server.
func stock() settings {
	return settings{shards: 1, dynamic: dynamicconfig.StaticClient{
		dynamicconfig.EnableServerVersionCheck.Key():      false,
		dynamicconfig.TaskQueueScannerEnabled.Key():       false,
		dynamicconfig.HistoryScannerEnabled.Key():         false,
		dynamicconfig.EnableParentClosePolicyWorker.Key(): false,
	}}
}

func fourShards() settings {
	return settings{shards: 4, dynamic: tuning()}
}

// variants runs the benchmark on each kind of store with each set of settings.
func variants(b *testing.B, run func(b *testing.B, c client.Client)) {
	for _, store := range []string{"memory", "file"} {
		for name, set := range map[string]settings{"tuned": tuned(), "stock": stock(), "four-shards": fourShards()} {
			b.Run(store+"/"+name, func(b *testing.B) {
				opts := Options{}
				if store == "file" {
					opts.DBFile = filepath.Join(b.TempDir(), "bench.db")
				}
				s, err := start(b.Context(), opts, set)
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() {
					if err := s.Stop(); err != nil {
						b.Error(err)
					}
				})
				run(b, dialTest(b, s))
			})
		}
	}
}

func perIteration(b *testing.B, total time.Duration, unit string) {
	b.ReportMetric(float64(total.Microseconds())/1000/float64(b.N), unit)
	b.ReportMetric(0, "ns/op")
}

// BenchmarkHop measures one activity in a chain of a hundred, from schedule to schedule.
func BenchmarkHop(b *testing.B) {
	const hops = 100
	variants(b, func(b *testing.B, c client.Client) {
		startWorker(b, c)
		execute(b, c, "warm", "chain", 10)
		began, cpu, i := time.Now(), cpuTime(b), 0
		for b.Loop() {
			execute(b, c, fmt.Sprintf("chain-%d", i), "chain", hops)
			i++
		}
		perIteration(b, time.Since(began)/hops, "ms/hop")
		perIteration(b, (cpuTime(b)-cpu)/hops, "cpu-ms/hop")
	})
}

// BenchmarkTimer measures how late a timer of 100 ms fires.
func BenchmarkTimer(b *testing.B) {
	const wait = 100 * time.Millisecond
	variants(b, func(b *testing.B, c client.Client) {
		late := make(chan time.Duration, 1)
		w := worker.New(c, testQueue, worker.Options{})
		w.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
			began := time.Now()
			err := workflow.Sleep(ctx, wait)
			late <- time.Since(began) - wait
			return err
		}, workflow.RegisterOptions{Name: "timer"})
		if err := w.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(w.Stop)
		var total time.Duration
		i := 0
		for b.Loop() {
			execute(b, c, fmt.Sprintf("timer-%d", i), "timer")
			total += <-late
			i++
		}
		perIteration(b, total, "ms-late")
	})
}

// BenchmarkCancel measures the time from cancelling a workflow until its activity notices, with a heartbeat time-out of
// 15 s.
func BenchmarkCancel(b *testing.B) {
	variants(b, func(b *testing.B, c client.Client) {
		began, ended := make(chan struct{}), make(chan time.Time)
		w := worker.New(c, testQueue, worker.Options{})
		w.RegisterActivityWithOptions(func(ctx context.Context) error {
			beat := time.NewTicker(100 * time.Millisecond) // the SDK sends only one every 12 s
			defer beat.Stop()
			began <- struct{}{}
			for {
				activity.RecordHeartbeat(ctx)
				select {
				case <-beat.C:
				case <-ctx.Done():
					ended <- time.Now()
					return ctx.Err()
				}
			}
		}, activity.RegisterOptions{Name: "wait"})
		w.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
			return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
				StartToCloseTimeout: time.Minute, HeartbeatTimeout: 15 * time.Second, WaitForCancellation: true,
			}), "wait").Get(ctx, nil)
		}, workflow.RegisterOptions{Name: "cancelled"})
		if err := w.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(w.Stop)
		var total time.Duration
		i := 0
		for b.Loop() {
			run, err := c.ExecuteWorkflow(b.Context(), client.StartWorkflowOptions{ID: fmt.Sprintf("cancel-%d", i), TaskQueue: testQueue}, "cancelled")
			if err != nil {
				b.Fatal(err)
			}
			<-began
			asked := time.Now()
			if err := c.CancelWorkflow(b.Context(), run.GetID(), run.GetRunID()); err != nil {
				b.Fatal(err)
			}
			total += (<-ended).Sub(asked)
			if err := run.Get(b.Context(), nil); !temporal.IsCanceledError(err) {
				b.Fatal(err)
			}
			i++
		}
		perIteration(b, total, "ms-to-notice")
	})
}

// BenchmarkStart measures the time from Start until the namespace answers, and the resident memory with the server
// running.
func BenchmarkStart(b *testing.B) {
	for _, store := range []string{"memory", "file"} {
		b.Run(store, func(b *testing.B) {
			var total time.Duration
			folder, i := b.TempDir(), 0
			for b.Loop() {
				opts := Options{}
				if store == "file" {
					opts.DBFile = filepath.Join(folder, fmt.Sprintf("%d.db", i))
				}
				began := time.Now()
				s, err := Start(b.Context(), opts)
				if err != nil {
					b.Fatal(err)
				}
				total += time.Since(began)
				b.ReportMetric(residentMiB(b), "MiB-resident")
				if err := s.Stop(); err != nil {
					b.Fatal(err)
				}
				i++
			}
			perIteration(b, total, "ms-to-start")
		})
	}
}

// cpuTime returns the processor time of this process. Unlike elapsed time, it hardly depends on other load on the
// machine.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// residentMiB returns this process's resident memory in MiB, including pages of the binary.
func residentMiB(b *testing.B) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip("no /proc here")
	}
	for line := range strings.Lines(string(status)) {
		var kib float64
		if _, err := fmt.Sscanf(line, "VmRSS: %f kB", &kib); err == nil {
			return kib / 1024
		}
	}
	b.Fatal("no VmRSS")
	return 0
}
