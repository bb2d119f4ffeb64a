package tasklist

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/placement"
	"switchyard/gateway/runview"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/admission"
)

// TestPlacementTextsMapToReasons checks that the texts of the placement queue map to their reasons.
func TestPlacementTextsMapToReasons(t *testing.T) {
	t.Parallel()
	node := &v1.NodeSnapshot{
		Name: "n1", Executors: []string{v1.TypeShell}, MaxParallel: 1, Cpu: &v1.CpuSnapshot{Cores: 4},
		Memory: &v1.MemorySnapshot{TotalMb: 8192, AvailableMb: 8192}, Disk: &v1.DiskSnapshot{TotalGb: 100, AvailableGb: 50},
	}
	q := placement.New(placement.Options{Now: time.Now, Epoch: "e"})
	said := func(req *historyv1.TaskRequest) string {
		req.Type, req.Claim = v1.TypeShell, 1
		return q.Explain("run", req).GetReason()
	}
	check := func(req *historyv1.TaskRequest, want string) {
		t.Helper()
		text := said(req)
		if got := waitFromText(text); got != (wait{want, text}) {
			t.Errorf("%q: %+v, want %s", text, got, want)
		}
	}
	check(&historyv1.TaskRequest{Task: "early"}, v1.WaitImpossible)
	q.SetNodes([]placement.Node{{Snapshot: node, State: v1.NodeOffline}})
	check(&historyv1.TaskRequest{Task: "fits later"}, v1.WaitAway)
	q.SetNodes([]placement.Node{{Snapshot: node}})
	check(&historyv1.TaskRequest{Task: "fits"}, v1.WaitNext)
	check(&historyv1.TaskRequest{Task: "large", Resources: &v1.Resources{MemoryMb: 1 << 20}}, v1.WaitImpossible)
	check(&historyv1.TaskRequest{Task: "elsewhere", Constraints: &v1.Constraints{TargetNode: "n9"}}, v1.WaitImpossible)
	check(&historyv1.TaskRequest{Task: "session", Constraints: &v1.Constraints{RequiresCapabilities: map[string]string{v1.SessionCapability("s"): "true"}}}, v1.WaitImpossible)
	check(&historyv1.TaskRequest{Task: "cluster", Constraints: &v1.Constraints{RequiresCapabilities: map[string]string{v1.ClusterCapability("c"): "true"}}}, v1.WaitImpossible)
	q.Request(placement.Run{ID: "run"}, []*historyv1.TaskRequest{{Task: "first", Type: v1.TypeShell, Claim: 1}})
	q.Place()
	check(&historyv1.TaskRequest{Task: "second"}, v1.WaitBusy)
	q.Request(placement.Run{ID: "run"}, []*historyv1.TaskRequest{{Task: "refused", Type: v1.TypeShell, Claim: 1, Refusals: 5}})
	check(&historyv1.TaskRequest{Task: "refused"}, v1.WaitBusy)
}

// TestAdmissionTextsMapToReasons checks that the texts of a run's admission map to their reasons, without numbers that differ
// from run to run.
func TestAdmissionTextsMapToReasons(t *testing.T) {
	t.Parallel()
	texts := map[string]string{} // by reason
	why := func(q *admission.Queue, task int) {
		t.Helper()
		text := q.Why(task)
		if text == "" {
			t.Fatalf("task %d does not wait", task)
		}
		w := waitFromText(text)
		texts[w.reason+": "+w.text] = text
	}
	q := admission.New(1)
	for task := range 2 {
		q.Add(admission.Request{Task: task, Group: task})
	}
	why(q, 0)
	q.Next()
	why(q, 1)
	q.Pause()
	why(q, 1)
	q = admission.New(0)
	for task := range 2 {
		q.Add(admission.Request{Task: task, Group: 9, Concurrency: 1})
	}
	q.Next()
	why(q, 1)
	q = admission.New(0)
	const many = 10 // more than a run requests of a lock in advance
	for task := range many {
		q.Add(admission.Request{Task: task, Group: task, Lock: admission.Lock{Name: "db", Limit: 1}})
	}
	q.Next()
	why(q, many-1)
	q = admission.New(0)
	q.LimitChildren(1)
	for task := range 2 {
		q.Add(admission.Request{Task: task, Group: task, Child: true})
	}
	q.Next()
	why(q, 1)
	for _, want := range []string{
		"turn: it is next in its run",
		"limit: its run has reached its maxParallel",
		"paused: its run is paused",
		"limit: its task has reached its concurrency",
		`lock: other tasks of its run are ahead of it for lock "db"`,
		"limit: its run has reached the limit of open child workflows",
	} {
		if texts[want] == "" {
			t.Errorf("no text is of %q: %v", want, texts)
		}
	}
}

// TestRunStateTakesPrecedenceAsWaitReason checks that the state of a run takes precedence over the texts, and that a failure
// is not taken for a reason to wait.
func TestRunStateTakesPrecedenceAsWaitReason(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	open, paused := &v1.Run{State: v1.RunRunning}, &v1.Run{State: v1.RunPaused, Error: "by ann: lunch"}
	for what, test := range map[string]struct {
		run  *v1.Run
		task *v1.Task
		want wait
	}{
		"held":             {open, &v1.Task{Held: true, Error: "by ann: not yet"}, wait{v1.WaitHeld, "is held back: by ann: not yet"}},
		"run is paused":    {paused, &v1.Task{}, wait{v1.WaitPaused, "its run is paused: by ann: lunch"}},
		"backs off":        {open, &v1.Task{Error: "exit code 3", ScheduledAfter: timestamppb.New(now.Add(time.Second))}, wait{v1.WaitBackOff, "waits for its retry after a failure"}},
		"has backed off":   {open, &v1.Task{Error: "exit code 3", ScheduledAfter: timestamppb.New(now)}, wait{v1.WaitAsking, ""}},
		"lock of the run":  {open, &v1.Task{Error: "waits for the lock db, held by a-1"}, wait{v1.WaitLock, "waits for the lock db, held by a-1"}},
		"nothing is known": {open, &v1.Task{}, wait{v1.WaitAsking, ""}},
	} {
		v := runview.NewView("r")
		v.Run = test.run
		if got := waitOf(v, &v1.Task{}, test.task, now); got != test.want {
			t.Errorf("%s: %+v, want %+v", what, got, test.want)
		}
	}
	if got := waitOf(&runview.View{Run: open}, &v1.Task{Held: true}, &v1.Instance{}, now); got.reason != v1.WaitHeld {
		t.Errorf("an instance of a task that is held: %+v", got)
	}
	for _, text := range waitTexts {
		if !slices.Contains(v1.WaitReasons(), text.reason) {
			t.Errorf("%s is no reason", text.reason)
		}
	}
}
