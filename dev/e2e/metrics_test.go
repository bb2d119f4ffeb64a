package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// TestMetrics scrapes a gateway and a worker after a run.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := startDev(t, "--nodes", "0")
	worker := startIn(t, repository, []string{"TEMPORAL_ADDRESS=" + s.temporal, "SWITCHYARD_GATEWAY=" + s.gateway, "TMPDIR=" + t.TempDir()},
		"worker", "--name", "metered", "--metrics-address", "127.0.0.1:0", "--spool-dir", t.TempDir())
	address := strings.TrimSpace(strings.TrimPrefix(worker.expect(&worker.stdout, "Metrics"), "Metrics"))
	id := s.submit(t, write(t, "name: metered\ntasks:\n  a: { type: shell, spec: { command: 'true' } }\n"))
	if code, _, stderr := run(t, "runs", "watch", id, "--gateway", s.gateway); code != 0 {
		t.Fatalf("watch exits with %d: %s", code, stderr)
	}
	for url, wanted := range map[string][]string{
		s.gateway + "/metrics": {
			"switchyard_placement_leader 1",
			"switchyard_build_info{",
			`switchyard_placement_decisions_total{type="shell"} `, // the placement may be repeated
			`switchyard_task_queue_seconds_count{type="shell"} `,
			`switchyard_nodes{state="active"} 1`,
			`switchyard_node_heartbeat_age_seconds{node="metered"} `,
			`switchyard_node_slots{kind="used",node="metered"} 0`,
			`switchyard_node_cores{kind="reserved",node="metered"} 0`,
			"temporal_request_total{",
		},
		address: {
			`switchyard_worker_claims_total{node="metered"} `,
			`switchyard_task_attempts_total{state="completed",type="shell"} 1`,
			`switchyard_task_run_seconds_count{state="completed",type="shell"} 1`,
			"temporal_request_total{",
		},
	} {
		// The run may end before the node has counted its attempt.
		var text string
		eventually(t, "a scrape shows the run", func() bool {
			text = string(fetch(t, http.MethodGet, url, ""))
			for _, want := range wanted {
				if !strings.Contains(text, want) {
					return false
				}
			}
			return true
		})
		t.Logf("%s: %d bytes", url, len(text))
	}
}
