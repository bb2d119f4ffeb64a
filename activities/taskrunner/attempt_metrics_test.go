package taskrunner

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/metrics"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

func TestMeasure(t *testing.T) {
	t.Parallel()
	began := time.Unix(1_800_000_000, 0)
	ran := func(node, state, reason string) *historyv1.ExecuteResponse {
		return &historyv1.ExecuteResponse{
			State: state, Reason: reason, Node: node,
			StartedAt: timestamppb.New(began), CompletedAt: timestamppb.New(began.Add(2 * time.Second)),
		}
	}
	for name, test := range map[string]struct {
		res  *historyv1.ExecuteResponse
		want []string
		not  string
	}{
		"completed":            {ran("a", "completed", ""), []string{`switchyard_task_attempts_total{state="completed",type="shell"} 1`, `switchyard_task_run_seconds_sum{state="completed",type="shell"} 2`}, "contention_total{"},
		"answered by a record": {ran("b", "completed", ""), []string{`switchyard_task_attempts_total{state="completed",type="shell"} 1`}, "run_seconds_sum{"},
		"no room":              {&historyv1.ExecuteResponse{State: "moved", Reason: "no_room", Node: "a"}, []string{`switchyard_worker_claim_contention_total{node="a"} 1`}, "run_seconds_sum{"},
		"another incarnation":  {&historyv1.ExecuteResponse{State: "moved", Reason: "incarnation", Node: "a"}, []string{`switchyard_worker_claim_contention_total{node="a"} 1`}, "expirations_total{"},
		"lease over":           {ran("a", "moved", "lease_lost"), []string{`switchyard_worker_lease_expirations_total{node="a",outcome="ended"} 1`, `switchyard_task_attempts_total{state="moved",type="shell"} 1`}, "contention_total{"},
		"batch": {
			&historyv1.ExecuteResponse{State: "completed", Node: "a", StartedAt: timestamppb.New(began), CompletedAt: timestamppb.New(began.Add(time.Hour)), Batch: []*historyv1.MemberResult{
				{Index: 1, TookMs: 500}, {Index: 2, TookMs: 1000}, {Index: 3, State: "failed", TookMs: 250},
			}},
			[]string{`switchyard_task_attempts_total{state="completed",type="shell"} 2`, `switchyard_task_run_seconds_sum{state="completed",type="shell"} 1.5`,
				`switchyard_task_attempts_total{state="failed",type="shell"} 1`}, "contention_total{",
		},
		"batch that was moved": {
			&historyv1.ExecuteResponse{State: "moved", Reason: "draining", Node: "a", StartedAt: timestamppb.New(began), CompletedAt: timestamppb.New(began.Add(time.Hour)), Batch: []*historyv1.MemberResult{{TookMs: 500}}},
			[]string{`switchyard_task_attempts_total{state="moved",type="shell"} 1`, `switchyard_task_run_seconds_sum{state="completed",type="shell"} 0.5`}, `run_seconds_sum{state="moved"`,
		},
		"node at fault": {nil, []string{`switchyard_task_attempts_total{state="failed",type="shell"} 1`}, "run_seconds_sum{"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			figures, err := metrics.New("test")
			if err != nil {
				t.Fatal(err)
			}
			attemptMetrics{figures, "a"}.countAttempt("shell", test.res)
			w := httptest.NewRecorder()
			figures.Handler().ServeHTTP(w, httptest.NewRequest("GET", metrics.Path, nil))
			for _, want := range test.want {
				if !strings.Contains(w.Body.String(), want+"\n") {
					t.Errorf("a scrape lacks %s", want)
				}
			}
			if strings.Contains(w.Body.String(), test.not) {
				t.Errorf("a scrape shows %s", test.not)
			}
		})
	}
}
