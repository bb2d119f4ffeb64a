package flight

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// one returns an attempt of one retryable member, changed by a function.
func one(change func(*Attempt)) Attempt {
	a := Attempt{Place: Place{Node: "n"}, Members: []Member{{Task: 3, Claim: 7, Attempt: 1, Number: -1, Retryable: true}}}
	if change != nil {
		change(&a)
	}
	return a
}

// answered returns the answer of a node; a started attempt has a start time.
func answered(state, reason string, started bool) Answer {
	res := &historyv1.ExecuteResponse{State: state, Reason: reason, Error: "E"}
	if started {
		res.StartedAt = timestamppb.New(timestamppb.Now().AsTime())
	}
	return Answer{Response: res, Beat: &historyv1.ExecuteProgress{}}
}

// failing returns the answer of an activity that failed.
func failing(kind Kind, spawned bool) Answer {
	return Answer{Kind: kind, Response: &historyv1.ExecuteResponse{}, Beat: &historyv1.ExecuteProgress{Spawned: spawned}, Text: "E"}
}

// endText shows an end: state, reason, outcome, and marks.
func endText(e End) string {
	parts := []string{e.Ended.State, e.Ended.Reason, e.Outcome}
	for _, mark := range []struct {
		text string
		is   bool
	}{{"unacknowledged", e.Unacknowledged}, {"continues", e.Continues}, {"final", e.Ended.NoRetry}} {
		if mark.is {
			parts = append(parts, mark.text)
		}
	}
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}

// The answer of a node, or the lack of one, and the facts of the attempt decide its end and what that implies about the node.
func TestEndOfAnAttempt(t *testing.T) {
	t.Parallel()
	unretryable := func(a *Attempt) { a.Members[0].Retryable = false }
	stopped := func(a *Attempt) { a.Members[0].Stopped = true }
	often := func(a *Attempt) { a.Members[0].LostLeases = maxLostLeases }
	excused := func(a *Attempt) { a.Excuse = "the node lives" }
	remote := func(a *Attempt) { a.Remote = true }
	lasting := func(a *Attempt) { a.Lasting = true }
	both := func(changes ...func(*Attempt)) func(*Attempt) {
		return func(a *Attempt) {
			for _, change := range changes {
				change(a)
			}
		}
	}
	for name, test := range map[string]struct {
		change func(*Attempt)
		answer Answer
		want   string // the end, and after a comma the outcome for the node
	}{
		"completed":     {nil, answered("completed", "", true), "completed done, done"},
		"failed":        {nil, answered("failed", "exit_code", true), "failed exit_code done, done"},
		"out of memory": {nil, answered("killed_oom", "oom", true), "killed_oom oom done, done"},
		"cancelled":     {nil, answered("cancelled", "cancelled", true), "cancelled cancelled,"},
		"no room":       {nil, answered("moved", "no_room", false), "moved no_room refused, refused"},
		"draining":      {nil, answered("moved", "draining", false), "moved draining refused, refused"},
		"other worker":  {nil, answered("moved", "incarnation", false), "moved incarnation refused, refused"},
		"no executor":   {nil, answered("moved", "no_executor", false), "moved no_executor refused, refused"},
		"did not start": {nil, answered("moved", "not_started", false), "moved not_started suspect, suspect"},
		"output":        {nil, answered("failed", "output", true), "failed output done, done"},
		"moved":         {nil, answered("moved", "something", false), "moved something moved, moved"},
		"evicted":       {nil, answered("lost", "evicted", true), "lost evicted done, done"},
		"bad spec":      {nil, answered("failed", "bad_spec", false), "failed bad_spec done final, done"},
		"unreadable":    {nil, failing(Unreadable, false), "failed payload final,"},
		"broken":        {nil, failing(Broken, false), "failed system system, system"},
		"broken for good": {nil, Answer{Kind: Broken, Response: &historyv1.ExecuteResponse{}, Beat: &historyv1.ExecuteProgress{}, Final: true},
			"failed system system final, system"},
		"stopped before the node had it": {stopped, failing(Cancelled, false), "cancelled cancelled final,"},
		"overdue":                        {nil, failing(Overdue, true), "failed timeout system unacknowledged, system"},
		"not picked up":                  {nil, failing(NotPickedUp, false), "moved not_picked_up suspect unacknowledged, suspect"},
		"silent before its start":        {nil, failing(Silent, false), "moved not_started suspect unacknowledged, suspect"},
		"silent":                         {nil, failing(Silent, true), "lost node_lost lost unacknowledged, lost"},

		"silent on a live node":                   {excused, failing(Silent, true), "moved lease_lost moved unacknowledged, moved"},
		"silent on a live node, not retryable":    {both(excused, unretryable), failing(Silent, true), "lost lease_lost moved unacknowledged, moved"},
		"silent on a live node, stopped":          {both(excused, stopped), failing(Silent, true), "lost node_lost lost unacknowledged, lost"},
		"lease lost before its start":             {unretryable, answered("moved", "lease_lost", false), "moved lease_lost moved unacknowledged, moved"},
		"lease lost":                              {nil, answered("moved", "lease_lost", true), "moved lease_lost moved unacknowledged, moved"},
		"lease lost, not retryable":               {unretryable, answered("moved", "lease_lost", true), "lost lease_lost moved unacknowledged, moved"},
		"lease lost again and again":              {often, answered("moved", "lease_lost", true), "lost lease_lost moved unacknowledged, moved"},
		"lease of what was to be stopped is lost": {both(unretryable, stopped), answered("moved", "lease_lost", true), "moved lease_lost moved unacknowledged, moved"},

		"remote, silent":                {both(remote, unretryable), failing(Silent, true), "moved node_lost lost unacknowledged continues, lost"},
		"remote, silent on a live node": {both(remote, excused), failing(Silent, true), "moved lease_lost moved unacknowledged continues, moved"},
		"remote, silent, stopped":       {both(remote, stopped), failing(Silent, true), "lost node_lost lost unacknowledged, lost"},
		"remote, released":              {remote, answered("moved", "draining", true), "moved draining refused continues, refused"},
		"remote, refused":               {remote, answered("moved", "no_room", false), "moved no_room refused, refused"},
		"remote, detached before it ran": {both(remote, func(a *Attempt) { a.WasDetached = true }), failing(Silent, true),
			"moved node_lost lost unacknowledged, lost"},
		"remote, detached": {both(remote, func(a *Attempt) { a.WasDetached, a.Members[0].Running = true, true }), failing(Silent, true),
			"moved node_lost lost unacknowledged continues, lost"},
		"lasting, ended": {lasting, answered("failed", "exit_code", true), "failed exit_code done final, done"},
		"lasting, moved": {lasting, answered("moved", "no_room", false), "moved no_room refused final, refused"},
	} {
		ends, outcome := one(test.change).End(test.answer)
		if got := strings.TrimSpace(endText(ends[0]) + ", " + outcome); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		if e := ends[0]; e.Node != "n" || e.Attempt != 1 || e.Ended.Task != 3 || e.Ended.Claim != 7 || e.Ended.ExitCode != -1 || e.Response == nil {
			t.Errorf("%s: the end is %+v", name, e)
		}
	}
}

// Three lost leases in a row do not count; the fourth says why it does.
func TestErrorOfLeasesLostInARow(t *testing.T) {
	t.Parallel()
	ends, _ := one(func(a *Attempt) { a.Members[0].LostLeases, a.Excuse = 3, "the node lives" }).End(failing(Silent, true))
	if got := ends[0].Ended.Error; got != "the node lives; 3 times in a row count as an attempt" {
		t.Error(got)
	}
}

// Of a batch, members with an answer end with it; the first without one was running, and the others go elsewhere.
func TestEndOfABatch(t *testing.T) {
	t.Parallel()
	done := func(numbers ...int32) (results []*historyv1.MemberResult) {
		for _, number := range numbers {
			results = append(results, &historyv1.MemberResult{Index: number})
		}
		return results
	}
	progress := func(kind Kind, numbers ...int32) Answer {
		a := failing(kind, true)
		a.Progress = &historyv1.ExecuteResponse{Batch: done(numbers...), Checkpoint: &historyv1.Checkpoint{Key: "half"}}
		return a
	}
	whole := func(state, reason string, batch ...*historyv1.MemberResult) Answer {
		a := answered(state, reason, true)
		a.Response.Batch = batch
		return a
	}
	recorded := progress(Silent, 0)
	recorded.Response.Batch = done(1)
	for name, test := range map[string]struct {
		stopped []int
		excuse  string
		answer  Answer
		want    string
	}{
		"completed": {answer: whole("completed", "", done(0, 1, 2)...), want: "completed done; completed done; completed done | done"},
		"one fails": {
			answer: whole("completed", "", append(done(0, 2), &historyv1.MemberResult{Index: 1, State: "failed", Reason: "exit_code"})...),
			want:   "completed done; failed exit_code done; completed done | done",
		},
		"silent": {
			answer: progress(Silent, 0),
			want:   "completed done; lost node_lost lost unacknowledged; moved node_lost moved unacknowledged | lost",
		},
		"silent, with a record of its node": {
			answer: recorded,
			want:   "completed done; completed done; lost node_lost lost unacknowledged | lost",
		},
		"silent on a live node": {
			excuse: "the node lives", answer: progress(Silent, 0),
			want: "completed done; moved lease_lost moved unacknowledged; moved node_lost moved unacknowledged | moved",
		},
		"lost, says the node": {
			answer: whole("lost", "node_lost", done(0)...),
			want:   "completed done; lost node_lost lost unacknowledged; moved node_lost moved unacknowledged | lost",
		},
		"not picked up": {
			answer: failing(NotPickedUp, false),
			want:   "moved not_picked_up moved unacknowledged; moved not_picked_up moved unacknowledged; moved not_picked_up moved unacknowledged | suspect",
		},
		"refused": {
			answer: whole("moved", "no_room"),
			want:   "moved no_room refused; moved no_room refused; moved no_room refused | refused",
		},
		"one is stopped": {
			stopped: []int{1},
			answer:  whole("completed", "", append(done(0), &historyv1.MemberResult{Index: 1, State: "cancelled"}, &historyv1.MemberResult{Index: 2, State: "cancelled"})...),
			want:    "completed done; cancelled; moved batch | done",
		},
		"stopped before the node had it": {
			stopped: []int{0, 2}, answer: failing(Cancelled, false),
			want: "cancelled cancelled final; moved cancelled moved; cancelled cancelled final |",
		},
		"too large for one answer": {
			answer: failing(Unreadable, false),
			want:   "failed payload final; failed payload final; failed payload final |",
		},
	} {
		a := Attempt{Place: Place{Node: "n"}, Excuse: test.excuse}
		for k := range 3 {
			a.Members = append(a.Members, Member{Task: 10 + k, Number: int32(k), Retryable: true})
		}
		for _, k := range test.stopped {
			a.Members[k].Stopped = true
		}
		ends, outcome := a.End(test.answer)
		var texts []string
		for k, end := range ends {
			if texts = append(texts, endText(end)); end.Ended.Task != 10+k {
				t.Errorf("%s: end %d is of task %d", name, k, end.Ended.Task)
			}
		}
		if got := strings.TrimSpace(strings.Join(texts, "; ") + " | " + outcome); got != test.want {
			t.Errorf("%s:\n%q, want\n%q", name, got, test.want)
		}
	}
}

// Times of a member are counted from the start of its batch.
func TestTimesOfAMember(t *testing.T) {
	t.Parallel()
	res := &historyv1.ExecuteResponse{Node: "n", AssignedAt: &timestamppb.Timestamp{Seconds: 10}}
	one := memberAnswer(res, &historyv1.MemberResult{StartedMs: 2000, TookMs: 3000})
	if got := fmt.Sprint(one.GetState(), one.GetStartedAt().GetSeconds(), one.GetCompletedAt().GetSeconds(), one.GetResult() == EmptyResult); got != "completed12 15 true" {
		t.Error(got)
	}
	if one := memberAnswer(res, &historyv1.MemberResult{StartedMs: -1}); one.StartedAt != nil {
		t.Errorf("one that did not start has the start %v", one.GetStartedAt())
	}
}

// What follows the end of an activity depends on whether the attempt may still run, and on whether its node may know more.
func TestStepAfterAnActivity(t *testing.T) {
	t.Parallel()
	plain, stopped := one(nil), one(func(a *Attempt) { a.Members[0].Stopped = true })
	remote, lasting := one(func(a *Attempt) { a.Remote = true }), one(func(a *Attempt) { a.Lasting = true })
	runs := one(func(a *Attempt) { a.Lasting, a.Members[0].Running = true, true })
	lastingStopped := one(func(a *Attempt) { a.Lasting, a.Members[0].Stopped = true, true })
	for name, test := range map[string]struct {
		a        Attempt
		answer   Answer
		hasLease bool
		want     Step
	}{
		"completed":                        {plain, answered("completed", "", true), false, Ends},
		"completed under a lease":          {plain, answered("completed", "", true), true, Ends},
		"handed back":                      {plain, answered("moved", "no_room", false), false, Ends},
		"lease lost":                       {plain, answered("moved", "lease_lost", true), false, IsLookedFor},
		"lease lost, stopped":              {stopped, answered("moved", "lease_lost", true), false, Ends},
		"lease lost, remote":               {remote, answered("moved", "lease_lost", true), false, Ends},
		"lease lost, lasting":              {lasting, answered("moved", "lease_lost", true), false, Ends},
		"silent":                           {plain, failing(Silent, true), false, IsLookedFor},
		"silent before its start":          {plain, failing(Silent, false), false, Ends},
		"silent, stopped":                  {stopped, failing(Silent, true), false, Ends},
		"silent, remote":                   {remote, failing(Silent, true), false, IsLookedFor},
		"silent under a lease":             {plain, failing(Silent, true), true, Expires},
		"not picked up":                    {plain, failing(NotPickedUp, true), false, Ends},
		"not picked up under a lease":      {plain, failing(NotPickedUp, false), true, Expires},
		"lost under a lease":               {plain, answered("lost", "node_lost", true), true, Expires},
		"cancelled":                        {stopped, failing(Cancelled, false), false, Ends},
		"cancelled under a lease":          {stopped, failing(Cancelled, false), true, IsStopped},
		"detached":                         {plain, answered("detached", "", true), false, RunsOn},
		"detached again":                   {plain, answered("detached", "", true), true, RunsOn},
		"lasting, silent":                  {lasting, failing(Silent, true), false, GoesAway},
		"lasting, silent before its start": {lasting, failing(Silent, false), false, Ends},
		"lasting, running, not picked up":  {runs, failing(NotPickedUp, false), true, GoesAway},
		"lasting, silent, stopped":         {lastingStopped, failing(Silent, true), false, Ends},
		"lasting, broken":                  {lasting, failing(Broken, false), false, Ends},
	} {
		if got := test.a.Next(test.answer, test.hasLease); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}
