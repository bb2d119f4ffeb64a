package view

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
)

// Whatever happens in a run, the newest event of each task matches its state, a started attempt has an assignment before it,
// and every failure is logged.
func TestEventsFollowTheStatesOfTasks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "tasks")
		def := &v1.Definition{FailurePolicy: rapid.SampledFrom([]string{"continue", "halt"}).Draw(t, "policy"), Tasks: map[string]*v1.TaskDefinition{}}
		for i := range n {
			retries := rapid.Int32Range(0, 2).Draw(t, "retries")
			task := &v1.TaskDefinition{Type: "shell", Retry: &v1.RetryPolicy{MaxRetries: &retries}}
			if i > 0 && rapid.Bool().Draw(t, "depends") {
				task.DependsOn = []string{fmt.Sprintf("t%d", rapid.IntRange(0, i-1).Draw(t, "on"))}
			}
			def.Tasks[fmt.Sprintf("t%d", i)] = task
		}
		graph, err := dag.NewGraph(def, nil)
		if err != nil {
			t.Fatal(err)
		}
		core := dag.New(graph)
		b := statusOf(def, graph, core)
		for i := range n {
			b.log.Add(time.Unix(0, 0), v1.EventSubmitted, i, "", 0, 0, "")
		}
		clock := int64(1)
		now := func() time.Time { return time.Unix(clock, 0) }
		carryOut := func(d dag.Decisions) {
			clock++
			for _, i := range d.Changed {
				b.Update(i, now())
			}
			for _, back := range d.Backoff {
				b.SetRetryTime(back.Task, now().Add(back.Delay), now())
			}
		}
		carryOut(core.Start())
		var failures int
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			i := rapid.IntRange(0, n-1).Draw(t, "task")
			rec := core.Task(i)
			var e dag.Event
			switch {
			case rapid.IntRange(0, 60).Draw(t, "cancels") == 60:
				e = dag.Cancel{}
			case rec.State == v1.TaskDeadLetter:
				e = dag.Retry{Task: i}
			case rec.Backoff:
				e = dag.BackoffOver{Task: i, Claim: rec.Claim}
			case rec.State == v1.TaskQueued:
				e = dag.Placed{Task: i, Claim: rec.Claim, Node: "a"}
			case rec.State == v1.TaskAssigned:
				state := rapid.SampledFrom([]string{"completed", "failed", "failed", "lost", "killed", "moved"}).Draw(t, "ends")
				ended := dag.Ended{Task: i, Claim: rec.Claim, State: state, Reason: "because"}
				b.EndAttempt(i, flight.End{Place: flight.Place{Node: "a"}, Attempt: rec.Attempt, Ended: ended, Response: &historyv1.ExecuteResponse{}}, now())
				if state != "completed" && state != "moved" && state != "killed" && !core.Cancelled() {
					failures++
				}
				e = ended
			default:
				continue
			}
			carryOut(core.Apply(e))
			checkNewest(t, b, core)
		}
		told := 0
		for _, e := range b.log.Unstored("", 0).GetEvents() {
			if e.GetEvent() == v1.EventFailed && e.GetClaim() > 0 && e.GetDetail() != "" {
				told++
			}
		}
		if told < failures {
			t.Fatalf("%d failures, %d are told", failures, told)
		}
	})
}

func checkNewest(t *rapid.T, b *Status, core *dag.State) {
	newest := map[string]string{} // by task name
	assigned := map[string]bool{}
	for _, e := range b.log.Unstored("", 0).GetEvents() {
		newest[e.GetTask()] = e.GetEvent()
		dispatch := fmt.Sprint(e.GetTask(), e.GetClaim())
		switch e.GetEvent() {
		case v1.EventAssigned:
			assigned[dispatch] = true
		case v1.EventStarted, v1.EventCompleted:
			if !assigned[dispatch] {
				t.Fatalf("%s of a dispatch that was never assigned: %v", e.GetEvent(), e)
			}
		}
	}
	for i := range b.entries {
		rec, event := core.Task(i), newest[b.core.Name(i)]
		var ok bool
		switch {
		case rec.State == v1.TaskPending:
			ok = event == v1.EventSubmitted || event == v1.EventRetried
		case rec.Backoff:
			ok = event == v1.EventRetried
		case rec.State == v1.TaskQueued:
			ok = event == v1.EventQueued || event == v1.EventReassigned
		case rec.State == v1.TaskDeadLetter:
			ok = event == v1.EventDeadLettered
		case rec.State == v1.TaskLost:
			ok = event == v1.EventFailed
		default: // the same word
			ok = event == rec.State
		}
		if !ok {
			t.Fatalf("task %d is %+v, and its newest event is %q", i, rec, event)
		}
	}
}
