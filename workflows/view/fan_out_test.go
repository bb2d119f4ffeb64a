package view

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
)

// newFan returns a status with one task that has fanned out, and its core.
func newFan(t interface{ Fatal(...any) }, count int) (*Status, *dag.State) {
	def := &v1.Definition{Name: "fan", Tasks: map[string]*v1.TaskDefinition{
		"each": {Type: "shell", Parallel: structpb.NewNumberValue(float64(count))},
		"last": {Type: "shell", DependsOn: []string{"each"}},
	}}
	graph, err := dag.NewGraph(def, nil)
	if err != nil {
		t.Fatal(err)
	}
	core := dag.New(graph)
	b := statusOf(def, graph, core)
	apply(b, core, core.Start(), 1)
	apply(b, core, core.Apply(dag.Expanded{Task: 0, Count: count}), 2)
	return b, core
}

func apply(b *Status, core *dag.State, d dag.Decisions, second int64) {
	b.AddInstances()
	for _, i := range d.Changed {
		b.Update(i, time.Unix(second, 0))
	}
}

// A watcher that applies all answers has every shown instance, receives each change once, and has the same counts as the
// core.
func TestInstancesAreAnsweredAsTheyChange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 9).Draw(t, "instances")
		b, core := newFan(t, count)
		seen, told := map[int32]*v1.Instance{}, 0
		var counts map[string]int32
		since := int64(0)
		look := func(bytes int32) bool {
			res, err := b.Answer(&historyv1.StatusRequest{Since: since, MaxBytes: bytes})
			if err != nil {
				t.Fatal(err)
			}
			if each := res.GetRun().GetTasks()["each"]; each != nil {
				counts = each.GetCounts()
				for _, i := range each.GetInstances() {
					seen[i.GetIndex()] = i
					told++
				}
			}
			since = res.GetRevision()
			return res.GetMore()
		}
		for look(0) {
		}
		if told != count {
			t.Fatalf("%d instances are told at first, want %d", told, count)
		}
		changes := 0
		for step := range rapid.IntRange(0, 40).Draw(t, "steps") {
			i := 2 + rapid.IntRange(0, count-1).Draw(t, "instance")
			rec := core.Task(i)
			var e dag.Event
			switch rec.State {
			case v1.TaskQueued:
				e = dag.Placed{Task: i, Claim: rec.Claim, Node: "n"}
			case v1.TaskAssigned:
				ended := dag.Ended{Task: i, Claim: rec.Claim, State: v1.TaskCompleted}
				b.EndAttempt(i, flight.End{Place: flight.Place{Node: "n"}, Ended: ended, Response: &historyv1.ExecuteResponse{Result: &v1.TaskResult{}}}, time.Unix(int64(step), 0))
				e = ended
			default:
				continue
			}
			changes++
			apply(b, core, core.Apply(e), int64(step+3))
			if rapid.Bool().Draw(t, "look") {
				look(rapid.Int32Range(0, 300).Draw(t, "bytes"))
			}
		}
		for look(0) {
		}
		if told > count+changes {
			t.Fatalf("%d instances were told for %d changes", told-count, changes)
		}
		want := map[string]int32{}
		for i := 2; i < core.Len(); i++ {
			want[core.Task(i).State]++
			if m := b.instanceMessage(i); !proto.Equal(seen[m.GetIndex()], m) {
				t.Fatalf("the watcher knows %v, the board %v", seen[m.GetIndex()], m)
			}
		}
		if !maps.Equal(counts, want) {
			t.Fatalf("counts %v, want %v", counts, want)
		}
	})
}

// If there are many instances, the status shows only the first ones. A change of another instance changes the counts of the
// task, and pages show all.
func TestManyInstancesAreSummarized(t *testing.T) {
	t.Parallel()
	const count = shownInstances + 500
	b, core := newFan(t, count)
	shown, since, more := 0, int64(0), true
	for more {
		res, err := b.Answer(&historyv1.StatusRequest{Since: since})
		if err != nil {
			t.Fatal(err)
		}
		shown += len(res.GetRun().GetTasks()["each"].GetInstances())
		since, more = res.GetRevision(), res.GetMore()
	}
	if shown != shownInstances {
		t.Errorf("%d instances are shown", shown)
	}
	apply(b, core, core.Apply(dag.Placed{Task: 2 + count - 1, Claim: core.Task(2 + count - 1).Claim, Node: "n"}), 9)
	res, err := b.Answer(&historyv1.StatusRequest{Since: since})
	if err != nil {
		t.Fatal(err)
	}
	if each := res.GetRun().GetTasks()["each"]; len(each.GetInstances()) != 0 || each.GetCounts()["assigned"] != 1 || len(res.GetRun().GetTasks()) != 1 {
		t.Errorf("news: %v", res)
	}
	for from, paged := int32(0), 0; ; {
		page, err := b.Instances(&historyv1.InstancesRequest{Task: "each", From: from, Limit: 700})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.GetInstances()) == 0 {
			if paged != count {
				t.Errorf("%d instances in pages", paged)
			}
			break
		}
		for k, i := range page.GetInstances() {
			if int(i.GetIndex()) != int(from)+k {
				t.Fatalf("instance %d of the page from %d on is %d", k, from, i.GetIndex())
			}
		}
		paged += len(page.GetInstances())
		from = page.GetNext()
	}
	if whole := b.Final(&dag.End{}, time.Now()).GetRun().GetTasks()["each"]; len(whole.GetInstances()) != count {
		t.Errorf("%d instances at the end", len(whole.GetInstances()))
	}
}

// A status that is carried to the next execution is restored unchanged, including instances.
func TestStateKeepsInstances(t *testing.T) {
	t.Parallel()
	b, core := newFan(t, 3)
	b.records.At(0).Items = &historyv1.Items{Key: "items"}
	b.records.At(3).Queue(time.Unix(2, 0))
	apply(b, core, core.Apply(dag.Placed{Task: 3, Claim: core.Task(3).Claim, Node: "n"}), 3)
	ended := dag.Ended{Task: 3, Claim: core.Task(3).Claim, State: v1.TaskCompleted}
	res := &historyv1.ExecuteResponse{Result: &v1.TaskResult{Stdout: "x", Output: &structpb.Struct{}}}
	end := flight.End{Place: flight.Place{Node: "n"}, Ended: ended, Response: res}
	b.records.Ended(end)
	b.EndAttempt(3, end, time.Unix(4, 0))
	apply(b, core, core.Apply(ended), 5)
	own := b.records.At(4)
	own.Checkpoint, own.Held, own.HeldBy = &historyv1.Checkpoint{Data: []byte("half")}, true, "by ann: not yet"
	b.Touch(4)
	runState := save(b)

	records := make([]dag.Record, core.Len())
	for i := range records {
		if task := runState.GetTasks()[core.Name(i)]; task != nil {
			records[i] = dag.RecordOf(task)
		}
	}
	next := dag.Restore(b.graph, records, dag.WithExpansion(0, 0, 3, false))
	if a, c := core.Records(), next.Records(); fmt.Sprint(a) != fmt.Sprint(c) {
		t.Errorf("the core continues with\n%v, want\n%v", c, a)
	}
	after := statusOf(&v1.Definition{}, b.graph, next)
	for i := range next.Len() {
		if task := runState.GetTasks()[next.Name(i)]; task != nil {
			after.records.Restore(i, task, true)
			after.Restore(i, task)
		}
	}
	for i := range next.Len() {
		want := b.taskMessage(i)
		if want.Held {
			want.Held, want.Error = false, "" // these are carried for the whole run
		}
		if got := after.taskMessage(i); !proto.Equal(got, want) {
			t.Errorf("%s is %v, want %v", b.core.Name(i), got, want)
		}
	}
	if i := after.instanceMessage(3); i.GetCreatedAt().GetSeconds() != 2 || i.GetQueuedAt().GetSeconds() != 2 {
		t.Errorf("the instance is %v", i)
	}
	if !proto.Equal(after.records.Of(0).Items, b.records.Of(0).Items) || string(after.records.Of(4).Checkpoint.GetData()) != "half" || len(runState.GetHeld()) != 1 || runState.GetHeld()[0] != "each[2]" || runState.GetHeldBy()["each[2]"] != "by ann: not yet" {
		t.Errorf("items %v, checkpoint %v, held %v", after.records.Of(0).Items, after.records.Of(4).Checkpoint, runState.GetHeld())
	}
}

// The event of the expansion holds the number of instances.
func TestExpansionIsLogged(t *testing.T) {
	t.Parallel()
	b, _ := newFan(t, 12)
	if got := dataOf(t, b.log); !slices.Contains(got, `expanded {"instances":12}`) {
		t.Errorf("got %s", got)
	}
}

// A task that fans out over an empty list has started and ended at once.
func TestFanOutOverNothingHasBegun(t *testing.T) {
	t.Parallel()
	b, core := newFan(t, 0)
	if each := b.taskMessage(0); each.GetState() != v1.TaskCompleted || each.GetStartedAt() == nil || core.Task(0).State != v1.TaskCompleted {
		t.Errorf("each: %v", each)
	}
}
