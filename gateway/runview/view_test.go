package runview

import (
	"maps"
	"reflect"
	"testing"
	"time"

	activitypb "go.temporal.io/api/activity/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// TestSlowWatcherReachesTheStateOfTheView checks that a watcher with occasional reads ends up with the state of the view, whatever it
// has missed.
func TestSlowWatcherReachesTheStateOfTheView(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := NewView("w-1")
		shown := &v1.Run{Tasks: map[string]*v1.Task{}}
		var seen, revision int64
		var generation int32
		look := func() {
			n := v.Since(seen)
			if n.Version < seen {
				t.Fatalf("the version went from %d to %d", seen, n.Version)
			}
			if n.Version == seen {
				return
			}
			seen = n.Version
			counts, instances := map[string]int32{}, map[string]int32{}
			for _, task := range v.Tasks {
				counts[task.Brief.GetState()]++
				for state, n := range task.Brief.GetCounts() {
					instances[state] += n
				}
			}
			if !maps.Equal(n.Run.GetTaskCounts(), counts) || !maps.Equal(n.Run.GetInstanceCounts(), instances) {
				t.Fatalf("the counts are %v and %v, want %v and %v", n.Run.GetTaskCounts(), n.Run.GetInstanceCounts(), counts, instances)
			}
			for _, m := range Messages(n) {
				tasks, context := shown.Tasks, shown.Context
				shown = proto.CloneOf(m.GetRun())
				if shown.Context == nil {
					shown.Context = context
				}
				for name, task := range m.GetRun().GetTasks() {
					tasks[name] = addInstances(task, tasks[name].GetInstances())
				}
				shown.Tasks = tasks
			}
		}
		states := rapid.SampledFrom([]string{"pending", "queued", "assigned", "completed"})
		tasks := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		t.Repeat(map[string]func(*rapid.T){
			"change": func(t *rapid.T) {
				revision++
				answer := &historyv1.StatusResponse{
					Run:      &v1.Run{Id: "w-1", Generation: generation, Tasks: map[string]*v1.Task{}},
					Claims:   map[string]int32{},
					Revision: revision,
				}
				if rapid.Bool().Draw(t, "context") {
					answer.Run.Context, _ = structpb.NewStruct(map[string]any{"n": float64(revision)})
				}
				for _, name := range rapid.SliceOf(tasks).Draw(t, "tasks") {
					answer.Run.Tasks[name] = &v1.Task{State: states.Draw(t, "state")}
					answer.Claims[name] = rapid.Int32Range(1, 2).Draw(t, "claim")
				}
				if rapid.Bool().Draw(t, "fanned out") {
					task := &v1.Task{State: "running", Count: proto.Int32(5), Counts: map[string]int32{"assigned": 5}}
					for _, index := range rapid.SliceOfDistinct(rapid.Int32Range(0, 4), rapid.ID).Draw(t, "instances") {
						i := &v1.Instance{Index: index, State: states.Draw(t, "state")}
						if rapid.Bool().Draw(t, "batched") {
							i.Lead = proto.Int32(rapid.Int32Range(0, index).Draw(t, "lead"))
						}
						task.Instances = append(task.Instances, i)
						answer.Claims[names.InstanceName("each", int(index))] = rapid.Int32Range(1, 2).Draw(t, "claim")
					}
					answer.Run.Tasks["each"] = task
				}
				running := map[string]RunningAttempt{}
				for _, name := range rapid.SliceOf(rapid.OneOf(tasks, rapid.SampledFrom([]string{"each[0]", "each[3]"}))).Draw(t, "running") {
					running[names.AttemptID(name, 1)] = RunningAttempt{assigned: timestamppb.Now(), Started: timestamppb.Now(), ended: rapid.IntRange(0, 3).Draw(t, "ended")}
				}
				v.Update([]*historyv1.StatusResponse{answer}, running)
			},
			"stop": func(*rapid.T) { v.Update(nil, nil) },
			"look": func(*rapid.T) { look() },
		})
		look()
		if len(shown.Tasks) != len(v.Names) || !proto.Equal(shown.GetContext(), v.Run.GetContext()) {
			t.Fatalf("shown %v, known %v", shown, v.Run)
		}
		for name, known := range v.Tasks {
			want := CopyWithoutInstances(known.Brief)
			for index, i := range known.Instances {
				if i == nil {
					continue
				}
				want.Instances = append(want.Instances, i.Brief)
				// The state does not depend on the updates that led to it.
				now := &InstanceView{Instance: i.Instance, Claim: i.Claim}
				if now.show(known, name, v.Running); !proto.Equal(now.Brief, i.Brief) {
					t.Fatalf("instance %d of %s is shown as %v and is %v", index, name, i.Brief, now.Brief)
				}
			}
			if !proto.Equal(shown.Tasks[name], want) {
				t.Fatalf("task %s: shown %v, known %v", name, shown.Tasks[name], want)
			}
		}
	})
}

// TestViewDropsOlderExecutions checks that a view drops the reports of an older execution under the same id.
func TestViewDropsOlderExecutions(t *testing.T) {
	v := NewView("w-1")
	answer := func(generation int32, revision int64, task string) *historyv1.StatusResponse {
		return &historyv1.StatusResponse{
			Run:      &v1.Run{Id: "w-1", Generation: generation, Tasks: map[string]*v1.Task{task: {State: "failed"}}},
			Revision: revision, TaskCount: 1,
		}
	}
	v.Update([]*historyv1.StatusResponse{answer(0, 7, "old")}, nil)
	v.Update([]*historyv1.StatusResponse{answer(1, 9, "new")}, nil)
	if len(v.Tasks) != 1 || v.Names[0] != "new" {
		t.Errorf("the tasks are %v", v.Names)
	}
	v.Update([]*historyv1.StatusResponse{answer(1, 2, "newer")}, nil)
	if len(v.Tasks) != 1 || v.Names[0] != "newer" || v.revision != 2 || v.Header().GetTaskCounts()["failed"] != 1 {
		t.Errorf("the tasks are %v", v.Names)
	}
}

func TestRunningAttemptsComeFromHeartbeats(t *testing.T) {
	beat := func(p *historyv1.ExecuteProgress) *commonpb.Payloads {
		payloads, err := converter.GetDefaultDataConverter().ToPayloads(p)
		if err != nil {
			t.Fatal(err)
		}
		return payloads
	}
	now, begun := timestamppb.Now(), timestamppb.New(timestamppb.Now().AsTime().Add(-1))
	pending := func(id, kind string, state enumspb.PendingActivityState, details *commonpb.Payloads) *workflowpb.PendingActivityInfo {
		return &workflowpb.PendingActivityInfo{
			ActivityId: id, ActivityType: &commonpb.ActivityType{Name: kind}, State: state,
			HeartbeatDetails: details, LastStartedTime: begun,
		}
	}
	const startedState = enumspb.PENDING_ACTIVITY_STATE_STARTED
	got := RunningAttempts([]*workflowpb.PendingActivityInfo{
		pending("runs#1", names.ExecuteActivity, startedState, beat(&historyv1.ExecuteProgress{Spawned: true, Claim: 1, StartedAt: now})),
		pending("runs-too#2", names.ExecuteActivity, startedState, beat(&historyv1.ExecuteProgress{Spawned: true, Claim: 2})),
		pending("stops#1", names.ExecuteActivity, enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED, beat(&historyv1.ExecuteProgress{Spawned: true, Claim: 1, StartedAt: now})),
		pending("silent#1", names.ExecuteActivity, startedState, nil),
		pending("starts#1", names.ExecuteActivity, startedState, beat(&historyv1.ExecuteProgress{Claim: 1})),
		pending("other-claim#2", names.ExecuteActivity, startedState, beat(&historyv1.ExecuteProgress{Spawned: true, Claim: 1})),
		pending("waits#1", names.ExecuteActivity, enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, beat(&historyv1.ExecuteProgress{Spawned: true, Claim: 1})),
		pending("other#1", names.AwaitPlacementActivity, startedState, beat(&historyv1.ExecuteProgress{Spawned: true, Claim: 1})),
		pending("odd", names.ExecuteActivity, startedState, &commonpb.Payloads{Payloads: []*commonpb.Payload{{Data: []byte("{")}}}),
	}, now.AsTime())
	same := func(id string, started *timestamppb.Timestamp) bool {
		return proto.Equal(got[id].Started, started) && proto.Equal(got[id].assigned, begun)
	}
	if len(got) != 3 || !same("runs#1", now) || !same("stops#1", now) || !same("runs-too#2", begun) {
		t.Errorf("got %v", got)
	}
}

// TestRunningAttemptShowsWhatHoldsItUp checks that an attempt shows the notice of its node, or that its node
// is silent.
func TestRunningAttemptShowsWhatHoldsItUp(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 30, 0, time.UTC)
	waits := &historyv1.ExecuteProgress{Spawned: true, Claim: 1, Notice: "waits"}
	left := &historyv1.ExecuteProgress{Spawned: true, Claim: 1, Left: true, LeftUntil: timestamppb.New(now.Add(12 * time.Second))}
	for _, test := range []struct {
		beat            *historyv1.ExecuteProgress
		silent, timeout time.Duration
		want            string
	}{
		{left, time.Second, 15 * time.Second, "runs on while the worker of node n restarts; if none continues it by 03:04:42 UTC, it is ended, and its attempt is lost at 03:04:44 UTC"},
		{&historyv1.ExecuteProgress{Spawned: true, Claim: 1, Left: true}, time.Second, 15 * time.Second, "runs on while the worker of node n restarts"},
		{waits, time.Second, 15 * time.Second, "waits"},
		{waits, 8 * time.Second, 15 * time.Second, "waits"},
		{waits, 9 * time.Second, 15 * time.Second, "node n has been silent since 03:04:21 UTC; its attempt is lost at 03:04:36 UTC, or, if its machine is off, with `switchyard nodes remove n --dead`"},
		{waits, 9 * time.Second, 10 * time.Minute, "node n has been silent since 03:04:21 UTC; its attempt is lost at 03:14:21 UTC, or, if its machine is off, with `switchyard nodes remove n --dead`"},
	} {
		details, err := converter.GetDefaultDataConverter().ToPayloads(test.beat)
		if err != nil {
			t.Fatal(err)
		}
		v := NewView("r")
		v.Update([]*historyv1.StatusResponse{{
			Run:    &v1.Run{Tasks: map[string]*v1.Task{"a": {State: v1.TaskAssigned, Node: "n"}}},
			Claims: map[string]int32{"a": 1}, TaskCount: 1,
		}}, RunningAttempts([]*workflowpb.PendingActivityInfo{{
			ActivityId: "a#1", ActivityType: &commonpb.ActivityType{Name: names.ExecuteActivity}, State: enumspb.PENDING_ACTIVITY_STATE_STARTED,
			HeartbeatDetails: details, LastHeartbeatTime: timestamppb.New(now.Add(-test.silent)),
			ActivityOptions: &activitypb.ActivityOptions{HeartbeatTimeout: durationpb.New(test.timeout)},
		}}, now))
		if a := v.Tasks["a"].Brief; a.GetState() != v1.TaskRunning || a.GetNotice() != test.want {
			t.Errorf("after %v: %v", test.silent, a)
		}
	}
}

// TestLeaseIsNoChangeOfTheView checks that watchers get what runs an attempt, and no update for each heartbeat.
func TestLeaseIsNoChangeOfTheView(t *testing.T) {
	t.Parallel()
	details, err := converter.GetDefaultDataConverter().ToPayloads(&historyv1.ExecuteProgress{Spawned: true, Claim: 1, Workload: &v1.Workload{Container: "3f2a"}})
	if err != nil {
		t.Fatal(err)
	}
	v, begun := NewView("r"), time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	beat := func(after time.Duration) map[string]RunningAttempt {
		p := &workflowpb.PendingActivityInfo{
			ActivityId: "a[0]#1", ActivityType: &commonpb.ActivityType{Name: names.ExecuteActivity}, State: enumspb.PENDING_ACTIVITY_STATE_STARTED,
			HeartbeatDetails: details, LastStartedTime: timestamppb.New(begun),
			ActivityOptions: &activitypb.ActivityOptions{HeartbeatTimeout: durationpb.New(15 * time.Second)},
		}
		if after > 0 {
			p.LastHeartbeatTime = timestamppb.New(begun.Add(after))
		}
		alone := proto.CloneOf(p)
		alone.ActivityId = "b#1"
		return RunningAttempts([]*workflowpb.PendingActivityInfo{p, alone}, begun.Add(after))
	}
	v.Update([]*historyv1.StatusResponse{{
		Run: &v1.Run{Tasks: map[string]*v1.Task{
			"a": {State: v1.TaskRunning, Count: proto.Int32(1), Counts: map[string]int32{v1.TaskAssigned: 1}, Instances: []*v1.Instance{{State: v1.TaskAssigned}}},
			"b": {State: v1.TaskAssigned},
		}}, Claims: map[string]int32{"a[0]": 1, "b": 1}, TaskCount: 2,
	}}, beat(0))
	version := v.newest
	for _, after := range []time.Duration{0, 5 * time.Second} {
		running := beat(after)
		v.Update(nil, running)
		i, b, until := v.Tasks["a"].Instances[0], v.Tasks["b"], begun.Add(after+15*time.Second)
		if i.Brief.GetWorkload().GetContainer() != "3f2a" || b.Brief.GetWorkload().GetContainer() != "3f2a" || !i.LeaseUntil.AsTime().Equal(until) || !b.LeaseUntil.AsTime().Equal(until) {
			t.Errorf("after %v: %v until %v, %v until %v", after, i.Brief, i.LeaseUntil, b.Brief, b.LeaseUntil)
		}
		if v.newest != version || b.Brief.LeaseUntil != nil {
			t.Errorf("after %v watchers see %v", after, b.Brief)
		}
		if after > 0 && running["b#1"].equal(beat(0)["b#1"]) {
			t.Error("a cached view would show an old lease")
		}
	}
	if v.Update(nil, nil); v.Tasks["b"].LeaseUntil != nil || v.Tasks["b"].Brief.Workload != nil {
		t.Errorf("without an attempt: %v", v.Tasks["b"])
	}
}

// TestDeltaNamesTheAttemptBeforeARetry checks that watchers learn which ended attempt printed the output in the result of a task
// that runs again.
func TestDeltaNamesTheAttemptBeforeARetry(t *testing.T) {
	lost, failed := &v1.Attempt{State: "lost", Claim: 1}, &v1.Attempt{Attempt: 1, State: "failed", Claim: 2}
	for what, test := range map[string]struct {
		task *v1.Task
		want *v1.Attempt
	}{
		"printed": {&v1.Task{State: "queued", Attempts: []*v1.Attempt{lost, failed}, Result: &v1.TaskResult{StderrTruncated: true}}, failed},
		"silent":  {&v1.Task{State: "queued", Attempts: []*v1.Attempt{failed, lost}, Result: &v1.TaskResult{ExitCode: -1}}, nil},
		"first":   {&v1.Task{State: "assigned"}, nil},
		"ended":   {&v1.Task{State: "failed", Attempts: []*v1.Attempt{lost, failed}, Result: &v1.TaskResult{Stdout: "text"}}, nil},
	} {
		v := NewView("w-1")
		v.Update([]*historyv1.StatusResponse{{Run: &v1.Run{Id: "w-1", Tasks: map[string]*v1.Task{"a": test.task}}, Revision: 1}}, nil)
		if got := v.Since(0).Tasks[0].Retried; !proto.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", what, got, test.want)
		}
	}
}

// TestDeltaNamesTheAttemptThatPrinted checks that the output in a result belongs to the attempt that printed it, which an attempt that
// reused its record, a run with the cached result and a silent task are not.
func TestDeltaNamesTheAttemptThatPrinted(t *testing.T) {
	t.Parallel()
	printed := &v1.TaskResult{Stdout: "text"}
	for what, test := range map[string]struct {
		task   *v1.Task
		record string
		want   *Printer
	}{
		"rejected":   {&v1.Task{State: "rejected", Attempt: 1, Result: printed}, "", nil},
		"printed":    {&v1.Task{State: "completed", Node: "n", Attempt: 1, Result: printed}, "", &Printer{Attempt: 1, Node: "n"}},
		"reused":     {&v1.Task{State: "completed", Node: "n", Attempt: 2, Result: printed}, storekey.Result("w-1", 3, "a", 1), &Printer{Attempt: 1, Node: "n", Recorded: true, Generation: 3}},
		"cached":     {&v1.Task{State: "completed", Node: "n", Result: printed, CachedFrom: "other-0k"}, "", nil},
		"silent":     {&v1.Task{State: "completed", Node: "n", Result: &v1.TaskResult{}}, "", nil},
		"runs again": {&v1.Task{State: "running", Node: "n", Result: printed}, "", nil},
	} {
		v := NewView("w-1")
		v.Update([]*historyv1.StatusResponse{{Run: &v1.Run{Id: "w-1", Tasks: map[string]*v1.Task{"a": test.task}}, Records: map[string]string{"a": test.record}, Revision: 1}}, nil)
		if got := v.Since(0).Tasks[0].Printer; !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %v, want %v", what, got, test.want)
		}
	}
}
