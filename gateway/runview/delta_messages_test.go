package runview

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// TestInstancesAreSplitOverMessages sends many instances in messages of bounded size, and then only the changes.
func TestInstancesAreSplitOverMessages(t *testing.T) {
	v := NewView("w-1")
	each := &v1.Task{State: "running", Count: proto.Int32(2000)}
	for i := range int32(2000) {
		each.Instances = append(each.Instances, &v1.Instance{Index: i, State: "queued", Error: strings.Repeat("waits ", 400)})
	}
	v.Update([]*historyv1.StatusResponse{{Run: &v1.Run{Tasks: map[string]*v1.Task{"each": each, "b": {State: "pending"}}}, Revision: 1}}, nil)
	messages := Messages(v.Since(0))
	told := map[int32]bool{}
	for _, m := range messages {
		if size := proto.Size(m); size > 2*MaxMessageBytes {
			t.Errorf("a message has %d bytes", size)
		}
		for _, i := range m.GetRun().GetTasks()["each"].GetInstances() {
			told[i.GetIndex()] = true
		}
	}
	if len(messages) < 3 || len(told) != ShownInstances {
		t.Errorf("%d messages tell %d instances", len(messages), len(told))
	}
	seen := v.version
	v.Update([]*historyv1.StatusResponse{{
		Run:      &v1.Run{Tasks: map[string]*v1.Task{"each": {State: "running", Count: proto.Int32(2000), Instances: []*v1.Instance{{Index: 7, State: "completed"}}}}},
		Revision: 2,
	}}, nil)
	messages = Messages(v.Since(seen))
	if tasks := messages[0].GetRun().GetTasks(); len(messages) != 1 || len(tasks) != 1 || len(tasks["each"].GetInstances()) != 1 || tasks["each"].GetInstances()[0].GetIndex() != 7 {
		t.Errorf("the news are %v", messages)
	}
}

// TestTasksAreSplitOverMessages checks that no message exceeds its size bound by much.
func TestTasksAreSplitOverMessages(t *testing.T) {
	n := Delta{Run: &v1.Run{Id: "r"}}
	for i := range 40 {
		n.Tasks = append(n.Tasks, TaskDelta{Name: string(rune('A' + i)), Task: &v1.Task{Error: string(make([]byte, 100<<10))}})
	}
	messages := Messages(n)
	tasks := 0
	for _, m := range messages {
		if size := len(m.GetRun().GetTasks()) * 100 << 10; size > MaxMessageBytes {
			t.Errorf("a message of %d bytes", size)
		}
		tasks += len(m.GetRun().GetTasks())
	}
	if tasks != 40 || len(messages) != 4 {
		t.Errorf("%d tasks in %d messages", tasks, len(messages))
	}
}
