package view

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/eventlog"
)

// dataOf returns the events of a log in the form "event {data}".
func dataOf(t *testing.T, l *eventlog.Log) []string {
	t.Helper()
	var all []string
	for _, e := range l.Unstored("", 0).GetEvents() {
		text, err := json.Marshal(e.GetData().AsMap())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e.GetEvent()+" "+string(text))
	}
	return all
}

func TestEventDataOfAnAttempt(t *testing.T) {
	t.Parallel()
	now, numa := time.Unix(9, 0), int32(0)
	placed := &historyv1.Assignment{Task: "t0", Claim: 1, Score: 87.5, Gpus: []int32{2, 3}, NumaNode: &numa, Why: "score 87.5: cpu 87.5"}
	assigned := `assigned {"gpus":[2,3],"numaNode":0,"score":87.5}`
	for name, test := range map[string]struct {
		result *v1.TaskResult
		ended  dag.Ended
		rec    dag.Record
		want   []string
	}{
		"completed": {
			&v1.TaskResult{Container: "c0ffee"}, dag.Ended{State: v1.TaskCompleted}, dag.Record{State: v1.TaskCompleted},
			[]string{`completed {"container":"c0ffee","exitCode":0}`},
		},
		"completed with a warning": {
			&v1.TaskResult{Warning: "a process was killed"}, dag.Ended{State: v1.TaskCompleted}, dag.Record{State: v1.TaskCompleted},
			[]string{`completed {"exitCode":0,"warning":"a process was killed"}`},
		},
		"stopped": {
			&v1.TaskResult{}, dag.Ended{State: v1.TaskStopped}, dag.Record{State: v1.TaskStopped},
			[]string{`completed {"exitCode":0,"state":"stopped"}`},
		},
		"failed for good": {
			&v1.TaskResult{Container: "c0ffee"}, dag.Ended{State: v1.TaskFailed, Reason: "exit_code", Error: "exit code 3", ExitCode: 3},
			dag.Record{State: v1.TaskDeadLetter, Reason: "exit_code"},
			[]string{
				`failed {"container":"c0ffee","error":"exit code 3","exitCode":3,"reason":"exit_code"}`,
				`dead_lettered {"container":"c0ffee","error":"exit code 3","exitCode":3,"reason":"exit_code"}`,
			},
		},
		"lost": {
			&v1.TaskResult{}, dag.Ended{State: v1.TaskLost, Error: "no heartbeat", ExitCode: -1}, dag.Record{State: v1.TaskLost},
			[]string{`failed {"error":"no heartbeat","state":"lost"}`},
		},
		"moved": {
			&v1.TaskResult{}, dag.Ended{State: v1.AttemptMoved, Reason: v1.ReasonNoRoom, Error: "full", ExitCode: -1}, dag.Record{State: v1.TaskQueued, Claim: 2},
			[]string{`reassigned {"error":"full","reason":"no_room"}`},
		},
		"killed": {
			&v1.TaskResult{Container: "c0ffee"}, dag.Ended{State: v1.TaskKilled, ExitCode: 137},
			dag.Record{State: v1.TaskKilled, Reason: v1.ReasonKilled, Error: "killed by ann: too slow"},
			[]string{`killed {"by":"ann","container":"c0ffee","error":"killed by ann: too slow","exitCode":137,"reason":"killed"}`},
		},
		"stopped by its deadline": {
			&v1.TaskResult{Container: "c0ffee"}, dag.Ended{State: v1.TaskCancelled, Reason: v1.ReasonCancelled, ExitCode: 143},
			dag.Record{State: v1.TaskFailed, Reason: v1.ReasonDeadline, Error: "it did not end within its deadline of 3s"},
			[]string{`failed {"container":"c0ffee","error":"it did not end within its deadline of 3s","exitCode":143,"reason":"deadline"}`},
		},
		"stopped with its fan-out": {
			&v1.TaskResult{}, dag.Ended{State: v1.TaskCancelled, ExitCode: -1}, dag.Record{State: v1.TaskSkipped, Reason: v1.ReasonMaxFailures},
			[]string{`skipped {"reason":"max_failures"}`},
		},
	} {
		b := newTestStatus(t, 1)
		b.core.Start()
		b.units.Want(0)
		b.units.Admit(now)
		b.units.News(&historyv1.PlaceResponse{Assigned: []*historyv1.Assignment{placed}})
		become(b, 0, dag.Record{State: v1.TaskAssigned, Node: "a", Claim: 1}, now)
		if test.rec.State == v1.TaskKilled {
			b.SetSteeredBy(0, "ann")
		}
		b.EndAttempt(0, flight.End{Place: flight.Place{Node: "a"}, Ended: test.ended, Response: &historyv1.ExecuteResponse{Result: test.result}}, now)
		become(b, 0, test.rec, now)
		if got, want := dataOf(t, b.log), append([]string{assigned}, test.want...); !slices.Equal(got, want) {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestEventDataWithoutAnAttempt(t *testing.T) {
	t.Parallel()
	now := time.Unix(9, 0)
	b := newTestStatus(t, 3)
	b.records.At(0).CachedFrom = "ci-1"
	become(b, 0, dag.Record{State: v1.TaskCompleted}, now)
	become(b, 1, dag.Record{State: v1.TaskSkipped, Reason: v1.ReasonUpstream, Error: "t0 has failed"}, now)
	b.SetSteeredBy(1, "ann")
	become(b, 1, dag.Record{State: v1.TaskQueued, Retried: true, Claim: 1}, now)
	b.SetRetryTime(2, time.Unix(60, 0), now)
	want := []string{
		`completed {"cachedFrom":"ci-1"}`,
		`skipped {"error":"t0 has failed","reason":"upstream"}`,
		`retried {"by":"ann"}`,
		`queued {}`,
		`retried {"until":"1970-01-01T00:01:00Z"}`,
	}
	if got := dataOf(t, b.log); !slices.Equal(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	if b.log.Unstored("", 0).GetEvents()[3].GetData() != nil {
		t.Error("an event about which nothing is known has data")
	}
}
