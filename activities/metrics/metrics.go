package metrics

import (
	"fmt"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.temporal.io/sdk/client"
)

// Metrics holds the metrics of one process.
type Metrics struct {
	registry *prometheus.Registry
	sdk      client.MetricsHandler
	observed *observed

	runs, tasks      *prometheus.CounterVec
	attempts         *prometheus.CounterVec
	queueTime        *prometheus.HistogramVec
	runTime          *prometheus.HistogramVec
	decisions        *prometheus.CounterVec
	reassignments    *prometheus.CounterVec
	claims           *prometheus.CounterVec
	contention       *prometheus.CounterVec
	leaseExpirations *prometheus.CounterVec
	suspicions       *prometheus.CounterVec
	agents           agents

	workflows *boundedLabel // workflows with label values of their own
}

// Bounds of histograms in seconds. Run times range from a short task to a long build, and queue times from an immediate
// placement to a fleet that is full for an hour.
var (
	runBounds   = []float64{0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 14400}
	queueBounds = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600}
)

// New returns the metrics of this process. version is that of its binary.
func New(version string) (*Metrics, error) {
	m := &Metrics{workflows: newBoundedLabel(maxWorkflows), registry: prometheus.NewRegistry(), observed: &observed{now: time.Now}}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.registry.MustRegister(c) // the names differ
		return c
	}
	histogram := func(name, help string, bounds []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds}, labels)
		m.registry.MustRegister(h)
		return h
	}
	m.runs = counter("switchyard_runs_total", "Runs that have ended, by outcome; a retried run counts again.", "workflow", "state")
	m.tasks = counter("switchyard_tasks_total", "Tasks and instances of runs that have ended, by outcome.", "type", "state")
	m.attempts = counter("switchyard_task_attempts_total", "Attempts that have ended on nodes, by outcome.", "type", "state")
	m.queueTime = histogram("switchyard_task_queue_seconds", "Time from when a task was ready until it had a node.", queueBounds, "type")
	m.runTime = histogram("switchyard_task_run_seconds", "Time from the start of an attempt's process until its end.", runBounds, "type", "state")
	m.decisions = counter("switchyard_placement_decisions_total", "Tasks that were given to a node.", "type")
	m.reassignments = counter("switchyard_placement_reassignments_total", "Dispatches that did not lead to an attempt, or were lost with their node.", "reason")
	m.claims = counter("switchyard_worker_claims_total", "Attempts that a node accepted.", "node")
	m.contention = counter("switchyard_worker_claim_contention_total", "Attempts that a node handed back because another attempt held the place.", "node")
	m.leaseExpirations = counter("switchyard_worker_lease_expirations_total", "Attempts whose lease expired: ended by their node, or lost with it.", "node", "outcome")
	m.suspicions = counter("switchyard_node_suspicions_total", "Dispatches that a node did not pick up, or did not start.", "node")
	m.agents = newAgents(counter)
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "switchyard_build_info", Help: "Always 1, labelled with the versions of the binary and of Go."}, []string{"version", "goversion"})
	build.WithLabelValues(version, runtime.Version()).Set(1)
	m.registry.MustRegister(build, m.observed, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	var err error
	if m.sdk, err = newSDK(m.registry); err != nil {
		return nil, fmt.Errorf("metrics of the Temporal SDK: %w", err)
	}
	return m, nil
}

// SDK returns the handler for the metrics of the Temporal SDK.
func (m *Metrics) SDK() client.MetricsHandler {
	if m == nil {
		return client.MetricsNopHandler
	}
	return m.sdk
}

// Handler returns a handler that serves the metrics in the formats of Prometheus.
func (m *Metrics) Handler() http.Handler {
	if m == nil {
		return http.NotFoundHandler()
	}
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// Placed counts a task that was given to a node, and records how long it waited after it was ready.
func (m *Metrics) Placed(taskType string, waited time.Duration) {
	if m == nil {
		return
	}
	m.decisions.WithLabelValues(taskType).Inc()
	m.queueTime.WithLabelValues(taskType).Observe(max(waited, 0).Seconds())
}

// Settled counts how a dispatch ended on its node, by the outcome of its claim, a historyv1.ClaimRef.
func (m *Metrics) Settled(node, outcome string) {
	if m == nil || outcome == "" || outcome == "done" {
		return
	}
	m.reassignments.WithLabelValues(outcome).Inc()
	switch outcome {
	case "lost":
		m.leaseExpirations.WithLabelValues(node, "lost").Inc()
	case "suspect":
		m.suspicions.WithLabelValues(node).Inc()
	}
}

// Claimed counts an attempt that a node accepted.
func (m *Metrics) Claimed(node string) {
	if m == nil {
		return
	}
	m.claims.WithLabelValues(node).Inc()
}

// Contended counts an attempt that a node handed back because another held the place.
func (m *Metrics) Contended(node string) {
	if m == nil {
		return
	}
	m.contention.WithLabelValues(node).Inc()
}

// LeaseExpired counts an attempt that a node ended because its lease was over.
func (m *Metrics) LeaseExpired(node string) {
	if m == nil {
		return
	}
	m.leaseExpirations.WithLabelValues(node, "ended").Inc()
}

// AttemptEnded counts an ended attempt by its state, and records how long its process ran, or 0 if there was none.
func (m *Metrics) AttemptEnded(taskType, state string, ran time.Duration) {
	if m == nil {
		return
	}
	m.attempts.WithLabelValues(taskType, state).Inc()
	if ran > 0 {
		m.runTime.WithLabelValues(taskType, state).Observe(ran.Seconds())
	}
}
