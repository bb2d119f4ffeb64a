package fanout

import (
	"slices"
	"testing"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// newPartition returns the state of a partition with two running instances.
func newPartition(t *testing.T) *State {
	t.Helper()
	s := newState(t, &v1.TaskDefinition{Retry: &v1.RetryPolicy{MaxRetries: new(int32)}})
	s.Input.Partition = &historyv1.Partition{Task: "each", Chain: "chain", From: 100, To: 102}
	s.core.Apply(dag.Expanded{From: 100, Count: 2})
	for i := 1; i <= 2; i++ {
		s.core.Apply(dag.Placed{Task: i, Claim: s.core.Task(i).Claim, Node: "n"})
	}
	return s
}

// A partition reports changes at most once a second, but its first failure, and what its run has asked for, at once.
func TestReportsOfPartition(t *testing.T) {
	t.Parallel()
	s := newPartition(t)
	running, failed := map[string]int32{v1.TaskRunning: 2}, map[string]int32{v1.TaskRunning: 1, v1.TaskFailed: 1}
	for _, step := range []struct {
		name   string
		after  time.Duration
		do     func()
		counts map[string]int32
		want   string
	}{
		{"the first report", 0, nil, running, "report map[running:2] updates=0"},
		{"nothing new", 2 * time.Second, nil, running, ""},
		{"a change", 2 * time.Second, nil, map[string]int32{v1.TaskAssigned: 2}, "report map[assigned:2] updates=0"},
		{"a change soon after", 2100 * time.Millisecond, nil, running, "report in 900ms"},
		{"another one", 2200 * time.Millisecond, nil, map[string]int32{v1.TaskRunning: 1, v1.TaskAssigned: 1}, ""},
		{"the first failure", 2300 * time.Millisecond, func() {
			s.core.Apply(dag.Ended{Task: 1, Claim: s.core.Task(1).Claim, State: v1.TaskFailed, Error: "exit code 3", ExitCode: 3})
		}, failed, "report map[failed:1 running:1] each[100]: exit code 3 updates=0"},
		{"an order", 2400 * time.Millisecond, func() { s.Ordered(&historyv1.PartitionOrder{}, false) }, failed, "report map[failed:1 running:1] each[100]: exit code 3 updates=0"},
		{"a context update", 4 * time.Second, func() { s.Update(object("a", "1"), start) }, failed, "report map[failed:1 running:1] each[100]: exit code 3 updates=1"},
	} {
		if step.do != nil {
			step.do()
		}
		got := texts(s, s.Report(start.Add(step.after), Facts{Counts: step.counts}, false))
		if got != step.want {
			t.Errorf("%s: %s, want %s", step.name, got, step.want)
		}
	}
	p := s.LastReport(start.Add(5*time.Second), Facts{Counts: failed, Nodes: []string{"n"}})
	if !p.GetOver() || p.GetState() != s.core.Task(0).State || p.GetFrom() != 100 || !slices.Equal(p.GetNodes(), []string{"n"}) {
		t.Errorf("the last report is %v", p)
	}
}

// A partition carries out the orders of its run; a run has none.
func TestOrdersOfRun(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		order  *historyv1.PartitionOrder
		paused bool
		want   string
	}{
		"kill":   {&historyv1.PartitionOrder{Killed: "by ann", Cancel: true}, false, "kill: by ann"},
		"cancel": {&historyv1.PartitionOrder{Cancel: true, CancelReason: "by ann"}, false, "cancel: by ann"},
		"pause":  {&historyv1.PartitionOrder{Paused: true}, false, "pause, resume group"},
		"resume": {&historyv1.PartitionOrder{}, true, "resume, resume group"},
		"halt":   {&historyv1.PartitionOrder{Halt: true, Paused: true}, true, "halt halt"},
	} {
		s := newPartition(t)
		if got := texts(s, s.Ordered(test.order, test.paused)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		if got := newState(t, &v1.TaskDefinition{}).Ordered(test.order, test.paused); got != nil {
			t.Errorf("a run carries out the order to %s", name)
		}
	}
}

// Names of instances in partitions belong to the states of their tasks, and only dead letters run again.
func TestNamesOfRerun(t *testing.T) {
	t.Parallel()
	tasks := map[string]*historyv1.TaskState{
		"each": {Partitions: []*historyv1.PartitionReport{{}}}, "few[1]": {Task: &v1.Task{State: v1.TaskDeadLetter}}, "few[2]": {Task: &v1.Task{State: v1.TaskFailed}},
	}
	own, remote := partitionedTasks([]string{"each[3]", "few[1]", "each[4]", "few[2]"}, tasks)
	if !slices.Equal(own, []string{"few[1]", "few[2]"}) || !slices.Equal(remote, []string{"each"}) || !slices.Equal(tasks["each"].GetRequeued(), []int32{3, 4}) {
		t.Errorf("own %v, remote %v, requeued %v", own, remote, tasks["each"].GetRequeued())
	}
	if letters := deadLettersAmong(own, tasks); !slices.Equal(letters, []string{"few[1]"}) {
		t.Errorf("dead letters %v", letters)
	}
}

// A task that failed continues from its checkpoint in the next generation. One that is repeated by name starts from its beginning.
func TestCheckpointsOfRerun(t *testing.T) {
	t.Parallel()
	for want, again := range map[string]*historyv1.Rerun{"half": {Failed: true}, "": {From: []string{"each"}}} {
		s := newState(t, &v1.TaskDefinition{})
		s.Input.Generation, s.Input.Rerun = 1, again
		s.core.Definition(0).Parallel = nil
		graph, err := dag.NewGraph(s.Input.GetDefinition(), nil)
		if err != nil {
			t.Fatal(err)
		}
		left := &historyv1.TaskState{Task: &v1.Task{State: v1.TaskFailed}, Checkpoint: &historyv1.Checkpoint{Data: []byte("half")}}
		if _, err := RestoreCore(s.Config, graph, &historyv1.RunState{}, map[string]*historyv1.TaskState{"each": left}); err != nil || string(left.GetCheckpoint().GetData()) != want {
			t.Errorf("%v: %q, %v", again, left.GetCheckpoint().GetData(), err)
		}
	}
}
