package workflows

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
)

// dataOf returns the events of a log as "event {data}".
func dataOf(t *testing.T, l *eventLog) []string {
	t.Helper()
	var all []string
	for i := range l.kept {
		e := l.message(i)
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
	placed := &v1.Assignment{Score: 87.5, Gpus: []int32{2, 3}, NumaNode: &numa, Why: "score 87.5: cpu 87.5"}
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
	} {
		b := newTestBoard(t, 1)
		b.place(0, placed.GetWhy(), -1, placeFacts(placed)...)
		b.update(0, dag.Record{State: v1.TaskAssigned, Node: "a", Claim: 1}, now)
		if test.rec.State == v1.TaskKilled {
			b.rare(0).steeredBy = "ann"
		}
		b.attemptEnded(0, dispatchEnd{assignment: assignment{claim: 1, node: "a"}, ended: test.ended, res: &v1.ExecuteResponse{Result: test.result}}, now)
		b.update(0, test.rec, now)
		if got, want := dataOf(t, b.log), append([]string{assigned}, test.want...); !slices.Equal(got, want) {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestEventDataWithoutAnAttempt(t *testing.T) {
	t.Parallel()
	now := time.Unix(9, 0)
	b := newTestBoard(t, 4)
	b.rare(0).cachedFrom = "ci-1"
	b.update(0, dag.Record{State: v1.TaskCompleted}, now)
	b.update(1, dag.Record{State: v1.TaskSkipped, Reason: v1.ReasonUpstream, Error: "t0 has failed"}, now)
	b.rare(1).steeredBy = "ann"
	b.update(1, dag.Record{State: v1.TaskQueued, Retried: true, Claim: 1}, now)
	b.scheduleAfter(2, time.Unix(60, 0), now)
	b.rare(3).fan = &fan{total: 12, counts: map[string]int32{}}
	b.update(3, dag.Record{State: v1.TaskRunning}, now)
	want := []string{
		`completed {"cachedFrom":"ci-1"}`,
		`skipped {"error":"t0 has failed","reason":"upstream"}`,
		`retried {"by":"ann"}`,
		`queued {}`,
		`retried {"until":"1970-01-01T00:01:00Z"}`,
		`expanded {"instances":12}`,
	}
	if got := dataOf(t, b.log); !slices.Equal(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	if b.log.message(3).GetData() != nil {
		t.Error("an event about which nothing is known has data")
	}
}

// However long its texts and lists are, the data of an event is small.
func TestEventDataIsBounded(t *testing.T) {
	t.Parallel()
	l := newTestBoard(t, 1).log
	long := strings.Repeat("é", 10_000)
	runs := make([]string, 1000)
	for i := range runs {
		runs[i] = fmt.Sprintf("%s-%d", long, i)
	}
	l.add(time.Unix(0, 0), v1.EventQueued, wholeRun, "", 0, 0, "", fact{dataError, long}, fact{dataWaitsFor, runs}, fact{dataGPUs, make([]int32, 1000)})
	data := l.message(0).GetData().AsMap()
	waits := data[dataWaitsFor].([]any)
	if len(data[dataError].(string)) != maxDetailBytes || len(waits) != maxDataItems || len(waits[0].(string)) != maxDetailBytes || len(data[dataGPUs].([]any)) != maxDataItems {
		t.Errorf("%v", data)
	}
}
