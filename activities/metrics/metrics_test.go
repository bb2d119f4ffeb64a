package metrics

import (
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// filled returns metrics with a value for every metric of Switchyard and for some of the Temporal SDK.
func filled(t *testing.T) *Metrics {
	t.Helper()
	m, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	m.Placed("shell", 20*time.Millisecond)
	m.Settled("a", "refused")
	m.Settled("a", "lost")
	m.Settled("a", "suspect")
	m.Settled("a", "done")
	m.Claimed("a")
	m.Contended("a")
	m.LeaseExpired("a")
	m.AttemptEnded("shell", "completed", time.Second)
	m.AttemptEnded("shell", "moved", 0)
	m.RunEnded("ci", "failed")
	m.TasksEnded("shell", "skipped", 1)
	m.TasksEnded("shell", "skipped", 2)
	m.AgentEnded(AgentUse{
		Model: "claude-x", Turns: 3, ToolCalls: map[string]int{"shell": 2, "never": 0}, InputTokens: 1200, OutputTokens: 300,
		CacheReadTokens: 50, CacheWriteTokens: 40, CostUSD: 0.25,
	})
	now := time.Unix(1_800_000_000, 0)
	m.observed.now = func() time.Time { return now }
	m.WatchFleet(func() Fleet {
		return Fleet{Waiting: 3, Placed: 2, Stuck: 1, LateSchedules: 4, Nodes: []FleetNode{
			{Name: "a", State: "active", LastBeat: now.Add(-2 * time.Second), Ledger: &Ledger{
				Slots: Amount{4, 1}, Cores: Amount{8, 2.5}, MemoryBytes: Amount{1024, 512}, GPUs: Amount{2, 1},
			}},
			{Name: "b", State: "offline"},
		}}
	})
	m.SDK().WithTags(map[string]string{"operation": "StartWorkflowExecution"}).Counter("temporal_request").Inc(1)
	m.SDK().WithTags(map[string]string{"operation": "StartWorkflowExecution"}).Counter("temporal_request_failure").Inc(1)
	m.SDK().WithTags(map[string]string{"workflow_type": "Run"}).Timer("temporal_workflow_task_execution_latency").Record(time.Millisecond)
	return m
}

// scrape returns the lines of a scrape without comments.
func scrape(t *testing.T, m *Metrics) []string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", Path, nil))
	if w.Code != 200 {
		t.Fatalf("a scrape gives %d: %s", w.Code, w.Body)
	}
	var lines []string
	for line := range strings.Lines(w.Body.String()) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// ours returns the lines of a scrape without buckets and without the metrics of the Go runtime and the process.
func ours(lines []string) []string {
	var kept []string
	for _, line := range lines {
		if !strings.HasPrefix(line, "go_") && !strings.HasPrefix(line, "process_") && !strings.Contains(line, "_bucket{") {
			kept = append(kept, line)
		}
	}
	return kept
}

func TestScrape(t *testing.T) {
	t.Parallel()
	want := strings.Split(strings.TrimSpace(`
switchyard_agent_cost_usd_total{model="claude-x"} 0.25
switchyard_agent_tokens_total{direction="cache_read",model="claude-x"} 50
switchyard_agent_tokens_total{direction="cache_write",model="claude-x"} 40
switchyard_agent_tokens_total{direction="input",model="claude-x"} 1200
switchyard_agent_tokens_total{direction="output",model="claude-x"} 300
switchyard_agent_tool_calls_total{tool="shell"} 2
switchyard_agent_turns_total 3
switchyard_build_info{goversion="`+runtime.Version()+`",version="test"} 1
switchyard_node_cores{kind="reserved",node="a"} 2.5
switchyard_node_cores{kind="total",node="a"} 8
switchyard_node_gpus{kind="reserved",node="a"} 1
switchyard_node_gpus{kind="total",node="a"} 2
switchyard_node_heartbeat_age_seconds{node="a"} 2
switchyard_node_memory_bytes{kind="reserved",node="a"} 512
switchyard_node_memory_bytes{kind="total",node="a"} 1024
switchyard_node_slots{kind="total",node="a"} 4
switchyard_node_slots{kind="used",node="a"} 1
switchyard_node_suspicions_total{node="a"} 1
switchyard_nodes{state="active"} 1
switchyard_nodes{state="draining"} 0
switchyard_nodes{state="offline"} 1
switchyard_nodes{state="restarting"} 0
switchyard_nodes{state="stale"} 0
switchyard_placement_decisions_total{type="shell"} 1
switchyard_placement_leader 1
switchyard_placement_reassignments_total{reason="lost"} 1
switchyard_placement_reassignments_total{reason="refused"} 1
switchyard_placement_reassignments_total{reason="suspect"} 1
switchyard_placement_tasks{state="placed"} 2
switchyard_placement_tasks{state="waiting"} 3
switchyard_runs_stuck 1
switchyard_runs_total{state="failed",workflow="ci"} 1
switchyard_schedules_late 4
switchyard_task_attempts_total{state="completed",type="shell"} 1
switchyard_task_attempts_total{state="moved",type="shell"} 1
switchyard_task_queue_seconds_sum{type="shell"} 0.02
switchyard_task_queue_seconds_count{type="shell"} 1
switchyard_task_run_seconds_sum{state="completed",type="shell"} 1
switchyard_task_run_seconds_count{state="completed",type="shell"} 1
switchyard_tasks_total{state="skipped",type="shell"} 3
switchyard_worker_claim_contention_total{node="a"} 1
switchyard_worker_claims_total{node="a"} 1
switchyard_worker_lease_expirations_total{node="a",outcome="ended"} 1
switchyard_worker_lease_expirations_total{node="a",outcome="lost"} 1
temporal_request_failure_total{operation="StartWorkflowExecution"} 1
temporal_request_total{operation="StartWorkflowExecution"} 1
temporal_workflow_task_execution_latency_seconds_sum{workflow_type="Run"} 0.001
temporal_workflow_task_execution_latency_seconds_count{workflow_type="Run"} 1
`), "\n")
	if diff := cmp.Diff(want, ours(scrape(t, filled(t)))); diff != "" {
		t.Errorf("a scrape (-want +got):\n%s", diff)
	}
}

// TestTerms checks that the end of an earlier term of this process does not hide the metrics of a later one.
func TestTerms(t *testing.T) {
	t.Parallel()
	m, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	leader := func() string {
		for _, line := range scrape(t, m) {
			if value, ok := strings.CutPrefix(line, "switchyard_placement_leader "); ok {
				return value
			}
		}
		return "none"
	}
	none := func() Fleet { return Fleet{} }
	if got := leader(); got != "0" {
		t.Errorf("before its first term: leader %s", got)
	}
	first := m.WatchFleet(none)
	second := m.WatchFleet(none)
	first()
	if got := leader(); got != "1" {
		t.Errorf("in its second term: leader %s", got)
	}
	second()
	if got := leader(); got != "0" {
		t.Errorf("after its second term: leader %s", got)
	}
}

// TestWorkflowLabelsAreBounded counts runs of more workflows than have label values of their own.
func TestWorkflowLabelsAreBounded(t *testing.T) {
	t.Parallel()
	m, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxWorkflows + 10 {
		m.RunEnded("workflow-"+strconv.Itoa(i), "completed")
	}
	m.RunEnded("workflow-0", "completed")
	var told []string
	for _, line := range scrape(t, m) {
		if strings.HasPrefix(line, "switchyard_runs_total{") {
			told = append(told, line)
		}
	}
	if len(told) != maxWorkflows+1 || !slices.Contains(told, `switchyard_runs_total{state="completed",workflow="(other)"} 10`) ||
		!slices.Contains(told, `switchyard_runs_total{state="completed",workflow="workflow-0"} 2`) {
		t.Errorf("%d figures, of %v", len(told), told[:3])
	}
}

// TestNil checks that a nil *Metrics accepts every call.
func TestNil(t *testing.T) {
	t.Parallel()
	var m *Metrics
	m.Placed("shell", 1)
	m.RunEnded("ci", "completed")
	m.TasksEnded("shell", "completed", 1)
	m.Settled("a", "lost")
	m.Claimed("a")
	m.Contended("a")
	m.LeaseExpired("a")
	m.AttemptEnded("shell", "failed", 1)
	m.AgentEnded(AgentUse{Turns: 1})
	m.WatchFleet(nil)()
	m.SDK().Counter("x").Inc(1)
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", Path, nil))
	if w.Code != 404 {
		t.Errorf("a scrape gives %d", w.Code)
	}
}

func TestListen(t *testing.T) {
	t.Parallel()
	m := filled(t)
	s, err := m.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	body := get(t, s.URL())
	if !strings.Contains(body, `switchyard_worker_claims_total{node="a"} 1`) {
		t.Errorf("a scrape says %s", body)
	}
	if _, err := m.Listen(t.Context(), s.listener.Addr().String()); err == nil {
		t.Error("the same port is taken twice")
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
