package workers

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/node"
)

// twoSockets is a machine with two NUMA nodes and three GPUs.
var twoSockets = node.Size{Cores: 4, MemoryMB: 100, GPUs: []node.GPU{{Index: 0}, {Index: 1, MemoryMB: 8000}, {Index: 2}}, NUMA: []node.NUMASize{
	{Index: 0, Cores: 2, MemoryMB: 50}, {Index: 1, Cores: 2, MemoryMB: 50},
}}

func TestRoomTakesWhatTheTaskNeeds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		req  *historyv1.ExecuteRequest
		need node.Need
	}{
		"nothing said":        {&historyv1.ExecuteRequest{}, node.Need{Cores: 1}},
		"only memory":         {&historyv1.ExecuteRequest{Resources: &v1.Resources{MemoryMb: 10}}, node.Need{Cores: 1, MemoryMB: 10}},
		"no cores":            {&historyv1.ExecuteRequest{Resources: &v1.Resources{Cores: new(float64)}}, node.Need{}},
		"cores":               {&historyv1.ExecuteRequest{Resources: &v1.Resources{Cores: proto.Float64(2.5), MemoryMb: 7}}, node.Need{Cores: 2.5, MemoryMB: 7}},
		"outside of the node": {&historyv1.ExecuteRequest{Type: v1.TypeK8sJob, Resources: &v1.Resources{Gpus: 8, MemoryMb: 1 << 20}}, node.Need{Remote: true}},
		"what placement picked": {
			&historyv1.ExecuteRequest{Resources: &v1.Resources{Gpus: 1}, Gpus: []int32{1}, NumaNode: proto.Int32(1)},
			node.Need{Cores: 1, GPUs: []int32{1}, NUMA: proto.Int32(1)},
		},
		"part of a GPU": {
			&historyv1.ExecuteRequest{Resources: &v1.Resources{Gpus: 0.25, GpuMemoryMb: 1000}, Gpus: []int32{1}},
			node.Need{Cores: 1, GPUs: []int32{1}, GPUPart: &v1.GpuPart{Thousandths: 250, MemoryMb: 1000}},
		},
		"memory of a GPU": {
			&historyv1.ExecuteRequest{Resources: &v1.Resources{GpuMemoryMb: 1000}, Gpus: []int32{1}},
			node.Need{Cores: 1, GPUs: []int32{1}, GPUPart: &v1.GpuPart{MemoryMb: 1000}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ledger := node.NewLedger(node.NewMachine(twoSockets), 1)
			release, err := newRoom(ledger).Acquire(t.Context(), test.req)
			if err != nil {
				t.Fatal(err)
			}
			if got := ledger.Running(); len(got) != 1 || !cmp.Equal(got[0].Need, test.need, cmpopts.EquateEmpty(), protocmp.Transform()) {
				t.Errorf("holds %v, want %v", got, test.need)
			}
			if release(); len(ledger.Running()) > 0 {
				t.Errorf("holds %v after its release", ledger.Running())
			}
			if release, err = newRoom(ledger).Restore(test.req, time.Now()); err != nil {
				t.Fatal(err)
			}
			if got := ledger.Running(); len(got) != 1 || !cmp.Equal(got[0].Need, test.need, cmpopts.EquateEmpty(), protocmp.Transform()) {
				t.Errorf("holds %v again, want %v", got, test.need)
			}
			release()
		})
	}
	// Earlier versions send a whole number.
	_, err := newRoom(node.NewLedger(node.NewMachine(twoSockets), 1)).Acquire(t.Context(), &historyv1.ExecuteRequest{Task: "t", Resources: &v1.Resources{WholeGpus: 2}, Gpus: []int32{0}})
	if err == nil || !strings.Contains(err.Error(), "needs 2 GPUs and was given 1") {
		t.Errorf("got %v", err)
	}
}

// TestRunningNamesTheAttempts checks that a snapshot lists the attempts, whatever their names contain, and what they
// hold.
func TestRunningNamesTheAttempts(t *testing.T) {
	t.Parallel()
	rooms := newRoom(node.NewLedger(node.NewMachine(twoSockets), 3))
	requests := []*historyv1.ExecuteRequest{
		{RunId: "a.b-c-x1", Task: "task_1-a", Claim: 12, Gpus: []int32{1, 0}, NumaNode: proto.Int32(0), Owner: "ann", Workflow: "nightly", Timeout: durationpb.New(time.Minute)},
		{RunId: "r", Task: "t", Claim: 1, Resources: &v1.Resources{Cores: proto.Float64(0.5), MemoryMb: 20}},
		{RunId: "r", Task: "u", Claim: 1, Resources: &v1.Resources{Cores: new(float64), Gpus: 0.5}, Gpus: []int32{2}},
	}
	for _, req := range requests {
		release, err := rooms.Acquire(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
	}
	want := []*v1.RunningAttempt{
		{RunId: "a.b-c-x1", Task: "task_1-a", Claim: 12, Cores: 1, Gpus: []int32{0, 1}, NumaNode: proto.Int32(0), Owner: "ann", Workflow: "nightly", Timeout: durationpb.New(time.Minute)},
		{RunId: "r", Task: "t", Claim: 1, Cores: 0.5, MemoryMb: 20},
		{RunId: "r", Task: "u", Claim: 1, Gpus: []int32{2}, GpuPart: &v1.GpuPart{Thousandths: 500}},
	}
	got := rooms.running()
	if len(got) != len(want) {
		t.Fatalf("running: %v", got)
	}
	for i := range want {
		if time.Since(got[i].GetStartedAt().AsTime()) > time.Minute {
			t.Errorf("started at %v", got[i].GetStartedAt())
		}
		got[i].StartedAt = nil
		if !proto.Equal(got[i], want[i]) {
			t.Errorf("got %v, want %v", got[i], want[i])
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := rooms.Acquire(ctx, &historyv1.ExecuteRequest{RunId: "r", Task: "u"}); err == nil {
		t.Error("a fourth attempt was let in by three slots")
	}
}

// TestRoomKnowsInstances checks that an instance has its own name on the ledger, and a batch that of its first
// instance.
func TestRoomKnowsInstances(t *testing.T) {
	t.Parallel()
	rooms := newRoom(node.NewLedger(node.NewMachine(twoSockets), 4))
	for _, req := range []*historyv1.ExecuteRequest{
		{RunId: "r-1", Task: "each", Claim: 2, Index: proto.Int32(3)}, {RunId: "r-1", Task: "each", Claim: 2, Index: proto.Int32(4)},
	} {
		release, err := rooms.Acquire(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
	}
	names := map[string]int32{}
	for _, r := range rooms.running() {
		names[r.GetRunId()+" "+r.GetTask()] = r.GetClaim()
	}
	if diff := cmp.Diff(map[string]int32{"r-1 each[3]": 2, "r-1 each[4]": 2}, names); diff != "" {
		t.Error(diff)
	}
}
