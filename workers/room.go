package workers

import (
	"context"
	"fmt"
	"os"
	"strings"

	"switchyard/activities/taskrunner"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/node"
	"switchyard/workflows/names"
	"switchyard/workflows/policy"
)

// room admits attempts according to the ledger of their node.
type room struct{ ledger *node.Ledger }

// Acquire waits for room on the node; see node.Ledger.Acquire. It uses the GPUs and the NUMA node that placement has
// picked, because the placement queue would not know of another choice.
func (r room) Acquire(ctx context.Context, req *historyv1.ExecuteRequest) (func(), error) {
	id, need := place(req)
	if picked, wanted := len(req.GetGpus()), policy.GPUsOf(req.GetResources()).Count; picked < wanted && !need.Remote {
		return nil, fmt.Errorf("task %s needs %d GPUs and was given %d", req.GetTask(), wanted, picked)
	}
	return r.ledger.Acquire(ctx, id, need)
}

// Restore takes the room that a recovered attempt already holds; see node.Ledger.Restore.
func (r room) Restore(req *historyv1.ExecuteRequest) (func(), error) {
	id, need := place(req)
	return r.ledger.Restore(id, need)
}

// place returns what an attempt holds on the ledger, and its ID there.
func place(req *historyv1.ExecuteRequest) (id string, need node.Need) {
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

// localNeed returns the resources of the machine that an attempt takes.
func localNeed(req *historyv1.ExecuteRequest) node.Need {
	res := req.GetResources()
	need := node.Need{Cores: 1, MemoryMB: float64(res.GetMemoryMb()), GPUs: req.GetGpus(), GPUPart: policy.GPUsOf(res).Part, NUMA: req.NumaNode}
	if res != nil && res.Cores != nil {
		need.Cores = res.GetCores()
	}
	return need
}

var _ taskrunner.Room = room{}

// running returns the attempts on a ledger and what they hold, as a snapshot lists them.
func running(l *node.Ledger) []*v1.RunningAttempt {
	var out []*v1.RunningAttempt
	for _, r := range l.Running() {
		run, attempt, _ := strings.Cut(r.ID, "/")
		task, claim, _ := names.ParseAttemptID(attempt)
		out = append(out, &v1.RunningAttempt{
			RunId: run, Task: task, Claim: claim,
			Cores: r.Need.Cores, MemoryMb: r.Need.MemoryMB, Gpus: r.Need.GPUs, GpuPart: r.Need.GPUPart, NumaNode: r.Need.NUMA, Remote: r.Need.Remote,
		})
	}
	return out
}

// ThisMachine measures the machine of this process. The nodes of the process share the result.
func ThisMachine(ctx context.Context) *node.Machine {
	return node.Measure(ctx, node.ProbeOptions{Dir: "."})
}

func machineID() string {
	hostname, _ := os.Hostname() // without a host name, the machine ID still distinguishes machines
	return node.MachineID(os.DirFS("/"), hostname)
}
