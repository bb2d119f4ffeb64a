package fanout

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// Only fan-outs beyond the limit, of tasks that need nodes, are large, and none of a partition is.
func TestIsLarge(t *testing.T) {
	t.Parallel()
	s := newState(t, &v1.TaskDefinition{})
	task := s.core.Definition(0)
	if isLarge(s.Config, task, 100) || !isLarge(s.Config, task, 101) || isLarge(s.Config, &v1.TaskDefinition{Type: v1.TypeApproval}, 101) {
		t.Error("100 instances stay with the run, 101 do not unless they need no node")
	}
	s.Input.Partition = &historyv1.Partition{}
	if isLarge(s.Config, task, 101) {
		t.Error("a partition has partitions")
	}
}

// As many partitions open as the limits allow, and each gets its share of the concurrency.
func TestOpenings(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		task        *v1.TaskDefinition
		maxParallel int32
		count, free int
		prepare     func(*State, *fanOut)
		want        string
	}{
		"all":               {count: 250, free: 9, want: "open 1: 0 to 100, open 2: 100 to 200, open 3: 200 to 250"},
		"eight at once":     {count: 1000, free: 99, want: "open 1: 0 to 100, open 2: 100 to 200, open 3: 200 to 300, open 4: 300 to 400, open 5: 400 to 500, open 6: 500 to 600, open 7: 600 to 700, open 8: 700 to 800"},
		"concurrency":       {task: &v1.TaskDefinition{Concurrency: 5}, count: 200, free: 9, want: "open 1: 0 to 100 at most 3, open 2: 100 to 200 at most 2"},
		"maxParallel":       {task: &v1.TaskDefinition{Concurrency: 5}, maxParallel: 1, count: 200, free: 9, want: "open 1: 0 to 100 at most 1"},
		"limit of children": {count: 300, free: 1, want: "open 1: 0 to 100, show waits: the run has reached the limit of 3 open child workflows"},
		"batches":           {task: &v1.TaskDefinition{Batch: structpb.NewNumberValue(5)}, count: 1001, free: 9, want: "open 1: 0 to 1000, open 2: 1000 to 1001"},
		"halted":            {count: 200, free: 9, prepare: func(_ *State, m *fanOut) { m.halt(v1.ReasonHalt) }},
		"stopped":           {count: 200, free: 9, prepare: func(_ *State, m *fanOut) { m.stopped = true }},
	} {
		if test.task == nil {
			test.task = &v1.TaskDefinition{}
		}
		s, m := expandedState(t, test.task, test.count)
		s.Input.Definition.MaxParallel = test.maxParallel
		if test.prepare != nil {
			test.prepare(s, m)
		}
		if got := texts(s, openAll(s, test.free)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// A run that is about to continue as new opens the first partition, and no further ones.
func TestDrainingRunOpensNoFurtherPartition(t *testing.T) {
	t.Parallel()
	s, _ := expandedState(t, &v1.TaskDefinition{}, 200)
	o, _ := s.Next(0, 0, 9, true)
	s.Open(o, nil)
	if o, _ := s.Next(0, o.To, 9, true); o != nil {
		t.Errorf("instances from %d on open", o.From)
	}
}

// reports returns reports of the two partitions of openState.
func reports(one, two map[string]int32, over bool) []*historyv1.PartitionReport {
	return []*historyv1.PartitionReport{
		{Task: "each", Chain: "chain", Revision: 9, Counts: one, Over: over, State: v1.TaskCompleted},
		{Task: "each", Chain: "chain", Revision: 9, From: 100, Counts: two, Over: over, State: v1.TaskCompleted},
	}
}

// A task has the counts of its partitions, halts them after too many failures, and ends with the last of them.
func TestReports(t *testing.T) {
	t.Parallel()
	completed := map[string]int32{v1.TaskCompleted: 100}
	for name, test := range map[string]struct {
		reports []*historyv1.PartitionReport
		want    string // the effects of the last report
	}{
		"running":               {reports(completed, map[string]int32{v1.TaskRunning: 99, v1.TaskFailed: 1}, false), "show map[completed:100 failed:1 running:99], wake"},
		"too many failures":     {reports(map[string]int32{v1.TaskRunning: 99, v1.TaskFailed: 1}, map[string]int32{v1.TaskRunning: 99, v1.TaskDeadLetter: 1}, false), "show map[dead_letter:1 failed:1 running:198], order cancel=false halt=true max_failures, order cancel=false halt=true max_failures, wake"},
		"cancelled by people":   {reports(map[string]int32{v1.TaskRunning: 99, v1.TaskCancelled: 1}, map[string]int32{v1.TaskRunning: 99, v1.TaskCancelled: 1}, false), "show map[cancelled:2 running:198], order cancel=false halt=true max_failures, order cancel=false halt=true max_failures, wake"},
		"all completed":         {reports(completed, completed, true), "await close 2, show map[completed:200], wake, ended completed"},
		"failures within limit": {reports(completed, map[string]int32{v1.TaskCompleted: 99, v1.TaskFailed: 1}, true), "await close 2, show map[completed:199 failed:1], wake, ended completed"},
		"of an earlier chain":   {[]*historyv1.PartitionReport{{Task: "each", Chain: "older", Revision: 9}}, ""},
		"of an older revision":  {[]*historyv1.PartitionReport{{Task: "each", Chain: "chain"}}, ""},
		"of another task":       {[]*historyv1.PartitionReport{{Task: "none", Chain: "chain", Revision: 9}}, ""},
	} {
		s, _ := openState(t)
		var effects []Effect
		for _, p := range test.reports {
			effects = s.Reported(p)
		}
		if got := texts(s, effects); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// What is left of a cancelled task is known once all of its open partitions have said it, and after the run has continued as new.
func TestTaskIsLeftOnNodesOfAllOpenPartitions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first, second []string
		isOver        bool // of the second
		want          []string
	}{
		"both":                {[]string{"b", "c"}, []string{"a", "b"}, false, []string{"a", "b", "c"}},
		"the second has more": {[]string{"b"}, nil, false, nil},
		"the second is over":  {[]string{"b"}, nil, true, []string{"b"}},
	} {
		s, m := openState(t)
		p := reports(map[string]int32{v1.TaskRunning: 100}, map[string]int32{v1.TaskRunning: 100}, false)
		p[0].LeftOn, p[1].LeftOn, p[1].Over = test.first, test.second, test.isOver
		s.Reported(p[0])
		s.Reported(p[1])
		next := newState(t, &v1.TaskDefinition{})
		count := int32(200)
		next.records.Restore(0, &historyv1.TaskState{Task: &v1.Task{Count: &count}, Partitions: m.partitions}, true)
		for _, state := range []*State{s, next} {
			if got := state.records.Of(0).LeftOn; !slices.Equal(got, test.want) {
				t.Errorf("%s: it is left on %v", name, got)
			}
		}
	}
}

// The end of a task names its first failure, and counts what people have cancelled, and partitions that never began.
func TestEndsOfFanOuts(t *testing.T) {
	t.Parallel()
	completed := map[string]int32{v1.TaskCompleted: 100}
	for name, test := range map[string]struct {
		first  map[string]int32 // counts of the first partition
		report *historyv1.PartitionReport
		halted bool
		want   string
	}{
		"failures": {map[string]int32{v1.TaskCompleted: 98, v1.TaskFailed: 2}, &historyv1.PartitionReport{State: v1.TaskFailed, Failure: "each[3]: exit code 3", ExitCode: 3}, true,
			"ended failed instances 2 of 200 instances failed: each[3]: exit code 3"},
		"cancelled instances": {map[string]int32{v1.TaskCompleted: 98, v1.TaskCancelled: 2}, &historyv1.PartitionReport{State: v1.TaskFailed}, true,
			"ended failed instances 2 of 200 instances were cancelled"},
		"one cancelled instance that fails its partition": {map[string]int32{v1.TaskCompleted: 99, v1.TaskCancelled: 1}, &historyv1.PartitionReport{State: v1.TaskFailed}, false,
			"ended failed instances 1 of 200 instances were cancelled"},
		"one cancelled instance that fails nothing": {map[string]int32{v1.TaskCompleted: 99, v1.TaskCancelled: 1}, &historyv1.PartitionReport{State: v1.TaskCompleted}, false,
			"ended completed"},
		"halt of the run": {map[string]int32{v1.TaskCompleted: 60, v1.TaskSkipped: 40}, &historyv1.PartitionReport{State: v1.TaskSkipped}, true,
			"ended skipped halt"},
	} {
		s, m := openState(t)
		if test.halted {
			s.Halt([]int{0})
		}
		s.Reported(reports(nil, completed, true)[1])
		p := test.report
		p.Task, p.Chain, p.Revision, p.Counts, p.Over = "each", "chain", 9, test.first, true
		if got := texts(s, s.Reported(p)); !strings.HasSuffix(got, ", "+test.want) {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		if end := m.ended(1, s.core.Definition(0), s.records.Of(0).Counts, m.countedFailures()); end.ExitCode != p.GetExitCode() || end.Claim != 1 {
			t.Errorf("%s: %+v", name, end)
		}
	}
}

// Partitions that never began because of failures in others count as skipped.
func TestPartitionsThatNeverBeganAreSkipped(t *testing.T) {
	t.Parallel()
	s, _ := expandedState(t, &v1.TaskDefinition{Concurrency: 1}, 400)
	openAll(s, 9)
	got := texts(s, s.Reported(&historyv1.PartitionReport{
		Task: "each", Chain: "chain", Revision: 9, Over: true, State: v1.TaskFailed, Failure: "each[0]: exit code 3", ExitCode: 3,
		Counts: map[string]int32{v1.TaskFailed: 1, v1.TaskSkipped: 99},
	}))
	if want := "ended failed instances 1 of 400 instances failed: each[0]: exit code 3"; !strings.Contains(got, "show map[failed:1 skipped:399]") || !strings.HasSuffix(got, want) {
		t.Errorf("effects %s", got)
	}
}

// A partition whose child ends without a final report is lost, once. The core ignores the second end of the task.
func TestPartitionWithoutFinalReportIsLost(t *testing.T) {
	t.Parallel()
	s, _ := openState(t)
	s.Reported(reports(map[string]int32{v1.TaskCompleted: 100}, nil, true)[0])
	if got := texts(s, s.Lost(1, "its workflow has ended")); got != "" {
		t.Errorf("a child that has reported its end is lost: %s", got)
	}
	got := texts(s, s.Lost(2, "its workflow has ended"))
	if want := "ended failed instances 100 of 200 instances failed: instances from 100 on: its workflow has ended"; !strings.Contains(got, "show map[completed:100 lost:100]") || !strings.HasSuffix(got, want) {
		t.Errorf("effects %s", got)
	}
}

// Orders reach the open partitions at once and a starting one when it is open. A child that is not prepared yet never starts if
// everything is to end.
func TestOrders(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		phase    phase
		do       func(*State) []Effect
		want     string
		whenOpen string
	}{
		"halt":               {open, func(s *State) []Effect { return s.Halt([]int{0}) }, "order cancel=false halt=true halt, order cancel=false halt=true halt", ""},
		"halt while wanted":  {wanted, func(s *State) []Effect { return s.Halt([]int{0}) }, "order cancel=false halt=true halt", "order cancel=false halt=true halt"},
		"stop while wanted":  {wanted, func(s *State) []Effect { return s.Stop(0) }, "order cancel=true halt=false, cancel child 2", ""},
		"stop when starting": {starting, func(s *State) []Effect { return s.Stop(0) }, "order cancel=true halt=false", "order cancel=true halt=false"},
		"kill": {open, func(s *State) []Effect {
			s.core.Apply(dag.Kill{Task: 0, Reason: "by ann"})
			return s.Stop(0)
		}, "order cancel=true halt=false by ann, order cancel=true halt=false by ann", ""},
		"stop of another task": {open, func(s *State) []Effect { return s.Stop(1) }, "", ""},
		"pause":                {open, func(s *State) []Effect { return s.OrderAll() }, "order cancel=false halt=false, order cancel=false halt=false", ""},
		"resume":               {open, func(s *State) []Effect { s.Halt([]int{0}); return s.Resume([]int{0}) }, "order cancel=false halt=false, order cancel=false halt=false", ""},
	} {
		s, _ := openState(t)
		s.children[2].phase = test.phase
		if got := texts(s, test.do(s)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		if got := texts(s, s.Opened(2, "first")); got != test.whenOpen {
			t.Errorf("%s, when the child is open: %s, want %s", name, got, test.whenOpen)
		}
	}
}

// A task that is stopped ends when its last partition has ended, even one whose child never started.
func TestStoppedTaskEndsWithItsPartitions(t *testing.T) {
	t.Parallel()
	s, _ := openState(t)
	s.children[2].phase = wanted
	s.Stop(0)
	s.Reported(reports(map[string]int32{v1.TaskCancelled: 100}, nil, true)[0])
	if got := texts(s, s.Unopened(2)); got != "show map[cancelled:200], wake, ended cancelled" {
		t.Errorf("effects %s", got)
	}
}

// A halted task resumes only if not too many of its instances have failed.
func TestHaltAfterFailuresOutlivesResume(t *testing.T) {
	t.Parallel()
	s, m := openState(t)
	s.Halt([]int{0})
	m.partitions[0].Counts = map[string]int32{v1.TaskRunning: 98, v1.TaskFailed: 2}
	if got := texts(s, s.Resume([]int{0})); got != "" || !m.halted || m.haltReason != v1.ReasonMaxFailures {
		t.Errorf("effects %s, halted: %v", got, m.halted)
	}
}

// A dead letter of an ended partition can be requeued once, and the partition opens again for it alone.
func TestRequeuedInstanceReopensItsPartition(t *testing.T) {
	t.Parallel()
	s, m := openState(t)
	task, number, ok := s.Instance("each[7]")
	if _, _, none := s.Instance("each[200]"); !ok || none {
		t.Fatal("each[7] is an instance, each[200] is not")
	}
	if err := s.MayRequeue(task, number); !errors.Is(err, ErrOpenPartition) {
		t.Errorf("the partition is open: %v", err)
	}
	s.Reported(reports(map[string]int32{v1.TaskCompleted: 99, v1.TaskDeadLetter: 1}, nil, true)[0])
	s.Lost(1, "")
	if err := s.MayRequeue(task, number); err != nil || s.CountDeadLetters() != 1 {
		t.Fatal(err)
	}
	if got := texts(s, s.Requeue(task, number)); got != "requeued" {
		t.Errorf("effects %s", got)
	}
	if err := s.MayRequeue(task, number); !errors.Is(err, dag.ErrNotDeadLetter) {
		t.Errorf("it is requeued twice: %v", err)
	}
	want := "open 3: 0 to 100 again failed=false skipped=true [each[7]], show map[completed:99 pending:1 running:100], wake"
	if got := texts(s, openAll(s, 9)); got != want {
		t.Errorf("effects %s, want %s", got, want)
	}
	if m.stopped = true; !errors.Is(s.MayRequeue(0, 150), ErrOpenPartition) {
		t.Error("the instance is still requeued")
	}
}

// A fan-out of which only some instances run again keeps its other partitions.
func TestRerunKeepsEndedPartitions(t *testing.T) {
	t.Parallel()
	s, m := openState(t)
	for number, p := range reports(map[string]int32{v1.TaskCompleted: 99, v1.TaskDeadLetter: 1}, map[string]int32{v1.TaskCompleted: 99, v1.TaskDeadLetter: 1}, true) {
		apply(s, s.Reported(p))
		s.Lost(number+1, "")
	}
	if !v1.IsTaskTerminal(s.core.Task(0).State) {
		t.Fatal("the task runs")
	}
	apply(s, s.Requeue(0, 150))
	s.partition(0, 200)
	if got := texts(s, s.take()); got != "show map[pending:200], expanded 200" || s.of(0) == m {
		t.Errorf("effects %s", got)
	}
	if got := texts(s, openAll(s, 9)); got != "open 3: 100 to 200 again failed=false skipped=true [each[150]]" {
		t.Errorf("effects %s", got)
	}
	if got := s.of(0).partitions; got[0] != m.partitions[0] || got[0].GetOver() != true || got[1].GetOver() {
		t.Errorf("partitions %v", got)
	}
}

// The next generation of a fan-out that failed keeps the partitions that completed, and in the others repeats what failed.
func TestRerunOfFailedFanOut(t *testing.T) {
	t.Parallel()
	s := newState(t, &v1.TaskDefinition{})
	count := int32(200)
	s.Restore(0, &historyv1.TaskState{
		Task:       &v1.Task{Count: &count},
		Partitions: reports(map[string]int32{v1.TaskCompleted: 100}, map[string]int32{v1.TaskCompleted: 98, v1.TaskFailed: 2}, true),
	})
	s.partition(0, 200)
	apply(s, s.take())
	if got := texts(s, openAll(s, 9)); got != "open 1: 100 to 200 again failed=true skipped=false []" {
		t.Errorf("effects %s", got)
	}
}

// The next execution continues with the open partitions, whose ends it awaits.
func TestFanOutOutlivesExecution(t *testing.T) {
	t.Parallel()
	s, m := openState(t)
	s.Reported(reports(map[string]int32{v1.TaskCompleted: 99, v1.TaskDeadLetter: 1}, nil, true)[0])
	saved := &historyv1.RunState{Tasks: map[string]*historyv1.TaskState{"each": {}}}
	s.Save(saved)
	task := saved.Tasks["each"]
	count := int32(200)
	task.Task = &v1.Task{Count: &count, Counts: s.records.Of(0).Counts}
	next := newState(t, &v1.TaskDefinition{MaxFailures: 1})
	next.Input.State = saved
	next.records.Restore(0, task, true)
	want := "reattach 1: first"
	if got := texts(next, next.Restore(0, task)); got != want || next.CountDeadLetters() != 1 {
		t.Errorf("effects %s, want %s", got, want)
	}
	if got := next.of(0).partitions; len(got) != 2 || !proto.Equal(got[0], m.partitions[0]) || !proto.Equal(got[1], m.partitions[1]) {
		t.Errorf("partitions %v", got)
	}
	if id, isOpen := next.ChildOf(&historyv1.InstancesRequest{Task: "each", From: 150}); id != s.idOf(m.partitions[1]) || !isOpen {
		t.Errorf("instance 150 is in %s, which is open: %v", id, isOpen)
	}
	if next.Restore(0, &historyv1.TaskState{}) != nil {
		t.Error("a task without partitions is restored")
	}
}

// Outputs of a partition that left no list are lost, and those of one that never began are skipped.
func TestAddOutputs(t *testing.T) {
	t.Parallel()
	s, m := openState(t)
	m.partitions = m.partitions[:1]
	req := &historyv1.CollectRequest{}
	if s.AddOutputs(req, 1) || !s.AddOutputs(req, 0) {
		t.Fatal("only task 0 has partitions")
	}
	if got := req.GetPartitions(); len(got) != 2 || got[0].GetState() != v1.TaskLost || got[0].GetCount() != 100 || got[1].GetState() != v1.TaskSkipped || got[1].GetCount() != 100 {
		t.Errorf("outputs %v", got)
	}
	m.partitions[0].LeftOn = []string{"n"}
	if s.AddOutputs(req, 0); req.GetPartitions()[2].GetState() != v1.TaskCancelled {
		t.Errorf("outputs of a partition on silent nodes: %v", req.GetPartitions()[2])
	}
}
