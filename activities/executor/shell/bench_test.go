//go:build unix

package shell

import (
	"bytes"
	"os/exec"
	"testing"
	"time"

	"switchyard/activities/executor"
)

// BenchmarkTrue compares `true` through the executor with what os/exec needs
// for it when nothing is kept together, sampled or cleaned up.
func BenchmarkTrue(b *testing.B) {
	b.Run("os_exec", func(b *testing.B) {
		for b.Loop() {
			var out, errs bytes.Buffer
			cmd := exec.Command("sh", "-c", "true")
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, m := range append(mechanismsHere(b), Group) {
		b.Run(string(m), func(b *testing.B) {
			e := newExecutor(b, Options{Mechanism: m, Watchdog: true})
			s := spec(b, map[string]any{"command": "true"})
			run := func() {
				var out, errs bytes.Buffer
				_, err := e.Run(b.Context(), executor.Attempt{
					ID: "bench/true/c1", Spec: s, Stdout: &out, Stderr: &errs, Grace: time.Second, Lease: executor.NewLease(executor.Now(), time.Hour, time.Hour),
				}, func() {})
				if err != nil {
					b.Fatal(err)
				}
			}
			run()
			for b.Loop() {
				run()
			}
		})
	}
}
