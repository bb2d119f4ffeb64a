package run_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/sdk/activity"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/executor/fake"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
)

func TestInstancesOfBatchGoToOneNodeAndEndIndividually(t *testing.T) {
	t.Parallel()
	for _, batch := range []string{"4", "auto"} {
		t.Run(batch, func(t *testing.T) {
			t.Parallel()
			c := workertest.Shared(t).Nodes(t, workertest.Script{"each": {{Output: "n=1"}, fake.Exit(3), {Stdout: "hello"}, {}}})
			c.Start("n")
			h := c.Submit(c.Input(fmt.Sprintf(`{name: batched, tasks: {
				each: {type: shell, spec: {command: x}, parallel: 10, batch: %s, concurrency: 1, retry: {backoffMs: 1}},
				last: {type: shell, spec: {command: x}, dependsOn: [each], condition: "parent.each.outputs[0].n == '1' && parent.each.completed == 10"}}}`, batch)))
			run := h.Wait()
			workertest.CheckRun(t, run, "completed", map[string]string{"each": "completed", "last": "completed"})
			each := run.Tasks["each"]
			retried := 0
			for k, i := range each.GetInstances() {
				if int(i.GetIndex()) != k || i.GetState() != "completed" || i.GetNode() != c.Name("n") || i.GetStartedAt() == nil || i.GetCompletedAt() == nil {
					t.Errorf("instance %v", i)
				}
				if i.GetAttempt() > 0 {
					retried++
					if a := i.GetAttempts(); len(a) != 2 || a[0].GetExitCode() != 3 || a[1].GetState() != "completed" {
						t.Errorf("attempts %v", a)
					}
				}
			}
			if len(each.GetInstances()) != 10 || retried != 1 || c.Calls()["each"] != 11 {
				t.Errorf("%d instances, %d were retried, %d executions", len(each.GetInstances()), retried, c.Calls()["each"])
			}
			activities := 0
			for _, e := range h.History("") {
				if strings.HasPrefix(e.GetActivityTaskScheduledEventAttributes().GetActivityId(), "each[") {
					activities++
				}
			}
			// The size of an automatic batch depends on the speed of the machine.
			if batch == "4" && activities > 4 {
				t.Errorf("%d activities", activities)
			}
			workertest.Replay(t, "batch-"+batch, limits.Run{}, h.History(""))
		})
	}
}

// TestBatchOfLostNodeLosesOnlyTheRunningInstance checks a batch on a lost node: the instances that its last heartbeat
// names have ended, the next instance is lost, and the others have not started.
func TestBatchOfLostNodeLosesOnlyTheRunningInstance(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	p := startPuppet(c, "n", func(ctx context.Context, p *puppet) (*historyv1.ExecuteResponse, error) {
		activity.RecordHeartbeat(ctx, &historyv1.ExecuteProgress{
			Spawned: true, StartedAt: at(0), Ended: 1, Checkpoint: &historyv1.Checkpoint{Data: []byte("half")},
			Batch: []*historyv1.MemberResult{{Index: 0, Result: &v1.TaskResult{Stdout: "done"}}},
		})
		go p.node.Stop()
		<-p.silence
		return nil, nil
	})
	in := c.Input(`{name: lost, tasks: {each: {type: shell, spec: {command: x}, parallel: 4, batch: 4, retry: {maxRetries: 1, backoffMs: 2000}}}}`)
	in.Options.HeartbeatTimeout = durationpb.New(workertest.ShortHeartbeat) // the next node starts earlier
	h := c.Submit(in)
	workertest.Eventually(t, "the node has the batch", func() bool { return p.members() != "" })
	next := startPuppet(c, "m", func(_ context.Context, p *puppet) (*historyv1.ExecuteResponse, error) {
		return &historyv1.ExecuteResponse{State: "completed", Node: p.name, AssignedAt: at(1), Batch: []*historyv1.MemberResult{{Index: 2}, {Index: 3}}}, nil
	})
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"each": "completed"})
	if got := p.members() + " then " + next.members(); got != "0.0+1.0+2.0+3.0 then 2.0+3.0 1.1" {
		t.Errorf("requests: %s", got)
	}
	each := run.Tasks["each"].GetInstances()
	if each[0].GetResult().GetStdout() != "done" || each[1].GetAttempt() != 1 || each[1].GetAttempts()[0].GetState() != "lost" || each[2].GetAttempt() != 0 {
		t.Errorf("instances: %v", each)
	}
	if last := next.requests[1]; string(last.GetCheckpoint().GetData()) != "half" || !slices.Contains(last.GetUnacknowledged(), 0) {
		t.Errorf("the last request is %v", last)
	}
	workertest.Replay(t, "batch-lost", limits.Run{}, h.History(""))
}
