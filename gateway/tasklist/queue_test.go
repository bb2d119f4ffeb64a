package tasklist

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

// waitingTask returns the queue of a task of a run with one waiting instance per text.
func waitingTask(run string, queued int, demand *v1.TaskDemand, texts ...string) *taskQueue {
	v := runview.NewView(run)
	v.Run.State = v1.RunRunning
	task := &v1.Task{Type: v1.TypeShell, State: v1.TaskQueued}
	v.Tasks["each"] = &runview.TaskView{Task: task, Brief: task}
	q := &taskQueue{view: v, name: "each", needs: taskNeeds{demand: demand}, now: time.Unix(1_700_000_000, 0)}
	for i, text := range texts {
		q.add(fmt.Sprintf("each[%d]", i), &v1.Instance{State: v1.TaskQueued, Error: text, QueuedAt: timestamppb.New(time.Unix(int64(1000-i), 0))})
	}
	return q.settle(queued)
}

// TestQueueCountsUnreadInstances checks that instances without a known reason are counted under the most
// frequent one.
func TestQueueCountsUnreadInstances(t *testing.T) {
	t.Parallel()
	const slots, turn = "0 of 1 nodes have a free slot", "it is next in its run"
	q := waitingTask("a", 9000, &v1.TaskDemand{Cores: 1}, slots, turn, slots, "", "", "", "", "", "", "")
	if len(q.waits) != 2 || q.waits[0].wait != (wait{v1.WaitBusy, slots}) || q.waits[0].count != 8999 || q.waits[1].count != 1 {
		t.Errorf("%d groups: %+v, %+v", len(q.waits), q.waits[0], q.waits[1])
	}
	if w := q.waits[0]; len(w.examples) != maxExamples || w.examples[0].GetTask() != "each[9]" || w.oldest.GetSeconds() != 991 {
		t.Errorf("the examples are %v", w.examples)
	}
	if q := waitingTask("a", 40, nil); len(q.waits) != 1 || q.waits[0].count != 40 || q.waits[0].wait != (wait{v1.WaitAsking, unknownText}) {
		t.Errorf("of none that was read it is %+v", q.waits)
	}
}

// TestQueueGroupsTasksOfARunByTheirDemand checks that tasks without a known reason are grouped with those of the
// same demand.
func TestQueueGroupsTasksOfARunByTheirDemand(t *testing.T) {
	t.Parallel()
	const slots = "0 of 1 nodes have a free slot"
	q := &queue{res: &v1.GetQueueResponse{}, groups: map[string]*v1.QueueGroup{}}
	addFleet(q.res, nil)
	one, two := &v1.TaskDemand{Cores: 1}, &v1.TaskDemand{Cores: 2}
	q.addRun([]*taskQueue{waitingTask("a", 0, one, ""), waitingTask("a", 0, one, slots), waitingTask("a", 0, two, "")})
	q.addRun([]*taskQueue{waitingTask("b", 0, one, "")})
	for i := range maxGroups {
		q.addRun([]*taskQueue{waitingTask("c", 0, one, fmt.Sprintf("waits for the lock %d", i))})
	}
	res := q.finish()
	first := res.GetGroups()[0]
	if first.GetReason() != v1.WaitBusy || first.GetCount() != 2 || first.GetRuns() != 1 {
		t.Errorf("the largest group is %v", first)
	}
	if len(res.GetGroups()) != maxGroups || res.GetTasks() != maxGroups+4 || len(res.GetWarnings()) != 1 || res.GetCores().GetAsked() != 5 {
		t.Errorf("%d groups of %d tasks, %v", len(res.GetGroups()), res.GetTasks(), res.GetWarnings())
	}
}
