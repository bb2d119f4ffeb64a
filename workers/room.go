package workers

import (
	"context"
	"os"
	"strings"

	"switchyard/activities"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/node"
	"switchyard/workflows/names"
)

// room lets attempts in by the ledger of their node.
type room struct{ ledger *node.Ledger }

// Acquire waits for a place; see node.Ledger.Acquire.
func (r room) Acquire(ctx context.Context, a *v1.RunningAttempt, res *v1.Resources) (func(), error) {
	need := node.Need{Cores: 1, MemoryMB: float64(res.GetMemoryMb()), GPUs: int(res.GetGpus())}
	if res != nil && res.Cores != nil {
		need.Cores = res.GetCores()
	}
	return r.ledger.Acquire(ctx, a.GetRunId()+"/"+names.AttemptID(a.GetTask(), a.GetClaim()), need)
}

var _ activities.Room = room{}

// running are the attempts on a ledger, as a snapshot lists them.
func running(l *node.Ledger) []*v1.RunningAttempt {
	var out []*v1.RunningAttempt
	for _, r := range l.Running() {
		run, attempt, _ := strings.Cut(r.ID, "/")
		task, claim, _ := names.ParseAttemptID(attempt)
		out = append(out, &v1.RunningAttempt{RunId: run, Task: task, Claim: claim})
	}
	return out
}

// ThisMachine is the machine of this process, for the nodes of this process to share.
func ThisMachine(ctx context.Context) *node.Machine {
	s := node.NewProbe(node.ProbeOptions{Dir: "."}).Snapshot(ctx)
	return node.NewMachine(node.Need{
		Cores:    float64(s.GetCpu().GetCores()),
		MemoryMB: s.GetMemory().GetTotalMb(),
	})
}

func machineID() string {
	hostname, _ := os.Hostname() // without one, the machine id still tells machines apart
	return node.MachineID(os.DirFS("/"), hostname)
}
