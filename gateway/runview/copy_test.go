package runview

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/proto/prototest"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// TestCopiesKeepEveryField checks that copies of runs, tasks and instances have every field of the workflow's report,
// except for those that are omitted on purpose.
func TestCopiesKeepEveryField(t *testing.T) {
	t.Parallel()
	run, task, instance, status := &v1.Run{}, &v1.Task{}, &v1.Instance{}, &historyv1.StatusResponse{}
	for _, m := range []proto.Message{run, task, instance, status} {
		prototest.Fill(m)
	}
	of := &TaskView{Task: task}
	shown := TaskRef{Task: of, Instance: &InstanceView{Brief: BriefInstance(instance)}}.Brief()
	for name, missing := range map[string][]string{
		"a header":          prototest.Missing(headerOf(run), "tasks", "context", "input"),
		"a problem":         prototest.Missing(withProblem(status, "stuck"), "more"),
		"a task":            prototest.Missing(CopyWithoutInstances(task), "instances", "created_at", "dead_lettered_at", "name", "workload", "lease_until"),
		"a brief task":      prototest.Missing(briefOf("a", of, nil), "instances", "attempts", "created_at", "dead_lettered_at", "name", "workload", "lease_until"),
		"a brief instance":  prototest.Missing(BriefInstance(instance), "attempts", "lead", "dead_lettered_at", "item", "workload", "lease_until"),
		"an instance alone": prototest.Missing(shown, "instances", "attempts", "count", "counts", "dead_lettered_at", "name", "workload", "lease_until", "late_since"),
		"a brief result":    prototest.Missing(briefResult(task.GetResult()), "stdout", "stderr", "output", "context_update", "image_digest", "container"),
	} {
		if len(missing) > 0 {
			t.Errorf("%s has no %v", name, missing)
		}
	}
}

// TestLostTaskIsCancelledWithItsRun checks that no task of a run that was closed from outside can still come back.
func TestLostTaskIsCancelledWithItsRun(t *testing.T) {
	t.Parallel()
	task := &v1.Task{
		State: v1.TaskRunning, Counts: map[string]int32{v1.TaskLost: 2, v1.TaskRunning: 1},
		Instances: []*v1.Instance{{State: v1.TaskLost, Notice: "its node is silent"}, {State: v1.TaskLost}, {State: v1.TaskRunning}},
	}
	cutOff(task, &v1.Run{Reason: v1.ReasonTerminated})
	if task.Counts[v1.TaskLost] != 1 || task.Counts[v1.TaskCancelled] != 2 || task.Instances[0].State != v1.TaskCancelled || task.Instances[1].State != v1.TaskLost {
		t.Errorf("%v", task)
	}
	away := &v1.Task{State: v1.TaskLost, Notice: "its node is silent"}
	if cutOff(away, &v1.Run{Reason: v1.ReasonTerminated}); away.State != v1.TaskCancelled || away.Notice != "" {
		t.Errorf("%v", away)
	}
}
