package workers

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/taskrunner"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/node"
	"switchyard/workflows/names"
	"switchyard/workflows/policy"
)

// room admits attempts according to the ledger of their node. It is safe for concurrent use.
type room struct {
	ledger *node.Ledger

	mu       sync.Mutex
	attempts map[string]attempt // by their IDs on the ledger
}

// attempt is what snapshots say of an attempt besides what it holds.
type attempt struct {
	req     *historyv1.ExecuteRequest
	started time.Time // zero if unknown
}

func newRoom(l *node.Ledger) *room { return &room{ledger: l, attempts: map[string]attempt{}} }

// Acquire waits for room on the node; see node.Ledger.Acquire. It uses the GPUs and the NUMA node that placement has
// picked, because the placement queue would not know of another choice.
func (r *room) Acquire(ctx context.Context, req *historyv1.ExecuteRequest) (func(), error) {
	id, need := place(req)
	if picked, wanted := len(req.GetGpus()), policy.GPUsOf(req.GetResources()).Count; picked < wanted && !need.Remote {
		return nil, fmt.Errorf("task %s needs %d GPUs and was given %d", req.GetTask(), wanted, picked)
	}
	release, err := r.ledger.Acquire(ctx, id, need)
	if err != nil {
		return nil, err
	}
	return r.describe(id, attempt{req: req, started: time.Now()}, release), nil
}

// Restore takes the room that a recovered attempt already holds; see node.Ledger.Restore.
func (r *room) Restore(req *historyv1.ExecuteRequest, started time.Time) (func(), error) {
	id, need := place(req)
	release, err := r.ledger.Restore(id, need)
	if err != nil {
		return nil, err
	}
	return r.describe(id, attempt{req: req, started: started}, release), nil
}

// describe makes snapshots describe an attempt until the returned function is called, which also calls release.
func (r *room) describe(id string, a attempt, release func()) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts[id] = a
	return func() {
		r.mu.Lock()
		delete(r.attempts, id)
		r.mu.Unlock()
		release()
	}
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

var _ taskrunner.Room = (*room)(nil)

// running returns the attempts on the ledger and what they hold, as a snapshot lists them.
func (r *room) running() []*v1.RunningAttempt {
	var out []*v1.RunningAttempt
	for _, on := range r.ledger.Running() {
		run, id, _ := strings.Cut(on.ID, "/")
		task, claim, _ := names.ParseAttemptID(id)
		shown := &v1.RunningAttempt{
			RunId: run, Task: task, Claim: claim,
			Cores: on.Need.Cores, MemoryMb: on.Need.MemoryMB, Gpus: on.Need.GPUs, GpuPart: on.Need.GPUPart, NumaNode: on.Need.NUMA, Remote: on.Need.Remote,
		}
		r.mu.Lock()
		a := r.attempts[on.ID]
		r.mu.Unlock()
		shown.Owner, shown.Workflow, shown.Timeout = a.req.GetOwner(), a.req.GetWorkflow(), a.req.GetTimeout()
		if !a.started.IsZero() {
			shown.StartedAt = timestamppb.New(a.started)
		}
		out = append(out, shown)
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
