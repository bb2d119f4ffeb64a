package workers

import (
	"context"
	"fmt"
	"os"
	"strings"

	"switchyard/activities/taskrunner"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/node"
	"switchyard/workflows/names"
)

// room lets attempts in by the ledger of their node.
type room struct{ ledger *node.Ledger }

// Acquire waits for a place; see node.Ledger.Acquire. The GPUs and the NUMA
// node are those that placement has picked: another choice here would be one
// that the placement queue does not know of.
func (r room) Acquire(ctx context.Context, req *v1.ExecuteRequest) (func(), error) {
	id, need := place(req)
	if picked, wanted := len(req.GetGpus()), int(req.GetResources().GetGpus()); picked < wanted && !need.Remote {
		return nil, fmt.Errorf("task %s needs %d GPUs and was given %d", req.GetTask(), wanted, picked)
	}
	return r.ledger.Acquire(ctx, id, need)
}

// Restore takes the place of an attempt that has it; see node.Ledger.Restore.
func (r room) Restore(req *v1.ExecuteRequest) (func(), error) {
	id, need := place(req)
	return r.ledger.Restore(id, need)
}

// place is what an attempt holds on the ledger, and the id under which it does.
func place(req *v1.ExecuteRequest) (id string, need node.Need) {
	if v1.IsRemote(req.GetType()) {
		need.Remote = true
	} else {
		need = localNeed(req)
	}
	name := req.GetTask()
	if req.Index != nil {
		name = names.InstanceName(name, int(req.GetIndex()))
	}
	return req.GetRunId() + "/" + names.AttemptID(name, req.GetClaim()), need
}

// localNeed returns what an attempt takes of the machine.
func localNeed(req *v1.ExecuteRequest) node.Need {
	res := req.GetResources()
	need := node.Need{Cores: 1, MemoryMB: float64(res.GetMemoryMb()), GPUs: req.GetGpus(), NUMA: req.NumaNode}
	if res != nil && res.Cores != nil {
		need.Cores = res.GetCores()
	}
	return need
}

var _ taskrunner.Room = room{}

// running are the attempts on a ledger with what they hold, as a snapshot lists them.
func running(l *node.Ledger) []*v1.RunningAttempt {
	var out []*v1.RunningAttempt
	for _, r := range l.Running() {
		run, attempt, _ := strings.Cut(r.ID, "/")
		task, claim, _ := names.ParseAttemptID(attempt)
		out = append(out, &v1.RunningAttempt{
			RunId: run, Task: task, Claim: claim,
			Cores: r.Need.Cores, MemoryMb: r.Need.MemoryMB, Gpus: r.Need.GPUs, NumaNode: r.Need.NUMA, Remote: r.Need.Remote,
		})
	}
	return out
}

// ThisMachine is the machine of this process, for the nodes of this process to share.
func ThisMachine(ctx context.Context) *node.Machine {
	return node.Measure(ctx, node.ProbeOptions{Dir: "."})
}

func machineID() string {
	hostname, _ := os.Hostname() // without one, the machine id still distinguishes machines
	return node.MachineID(os.DirFS("/"), hostname)
}
