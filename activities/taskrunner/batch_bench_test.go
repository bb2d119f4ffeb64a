//go:build unix

package taskrunner

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell"
	"switchyard/activities/executor/workspace"
	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
)

// BenchmarkTrue compares the bare start of `true` with `true` as an attempt of its own and as a member of a batch of 500.
// The server answers at once. The benchmark also reports the processor time of this process and its children, which is
// more meaningful on a busy machine.
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
	b.Run("attempt", func(b *testing.B) {
		n, claim := benchNode(b), int32(0)
		cpuTime(b)
		for b.Loop() {
			claim++
			req := trueRequest(claim)
			req.Attempt = claim
			mustComplete(b, n, req)
		}
	})
	b.Run("batch", func(b *testing.B) {
		n, claim, left := benchNode(b), int32(0), 0
		cpuTime(b)
		for b.Loop() {
			if left--; left >= 0 {
				continue // it was in the previous batch
			}
			claim++
			left = min(500, max(b.N, 500)) - 1
			req := trueRequest(claim)
			req.Index, req.Count = new(int32(0)), 500
			for i := range int32(500) {
				req.Batch = append(req.Batch, &v1.Member{Index: i, Claim: claim})
			}
			res := mustComplete(b, n, req)
			if len(res.GetBatch()) != 500 || len(ends(res.GetBatch())[499]) != 3 {
				b.Fatalf("%d members, the last %v", len(res.GetBatch()), res.GetBatch()[499])
			}
		}
	})
}

func trueRequest(claim int32) *v1.ExecuteRequest {
	return &v1.ExecuteRequest{
		RunId: "r-1", Workflow: "r", Task: "a", Type: "shell", Claim: claim, InlineLimit: 1000,
		Spec: &structpb.Struct{Fields: map[string]*structpb.Value{"command": structpb.NewStringValue("true")}},
	}
}

func mustComplete(b *testing.B, n *Node, req *v1.ExecuteRequest) *v1.ExecuteResponse {
	d := delivery{token: []byte("token"), queue: "node:n:cpu", heartbeat: 15 * time.Second}
	res, err := n.executeFrom(b.Context(), d, req)
	if err != nil || res.GetState() != "completed" {
		b.Fatal(fmt.Errorf("%v: %w", res, err))
	}
	return res
}

// benchNode returns a node with a folder as its store and a server that answers at once.
func benchNode(b *testing.B) *Node {
	s, err := store.Open(b.Context(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	e, err := shell.New(shell.Options{Watchdog: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := e.Close(); err != nil {
			b.Error(err)
		}
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return &Node{
		Name: "n", Client: &server{}, Store: s, Room: testRoom(func(ctx context.Context) error { return nil }),
		Executors: map[string]executor.Executor{"shell": e}, Folders: Folders{Workspaces: workspace.NewRoot(b.TempDir(), ""), BaseDir: b.TempDir()},
		Logger: slog.New(slog.DiscardHandler),
	}
}

// cpuTime reports the processor time per operation, of this process and its children.
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
