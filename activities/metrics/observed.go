package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Fleet holds the metrics of the placement queue and of the fleet from the view of its leader.
type Fleet struct {
	// Waiting counts the tasks that wait for a node, and Placed those that hold a place on one.
	Waiting, Placed int
	// Stuck counts the runs and parts of fan-outs whose workflow task keeps failing.
	Stuck int
	// LateSchedules is the number of schedules without a completed run by the expected time.
	LateSchedules int
	// Nodes holds the nodes of the fleet in any order.
	Nodes []FleetNode
}

// FleetNode is a node of the fleet.
type FleetNode struct {
	Name  string
	State string
	// LastBeat is when the newest heartbeat was received, or zero if none has been.
	LastBeat time.Time
	// Ledger holds the resources of the node, or is nil while the node is offline.
	Ledger *Ledger
}

// Ledger holds the resources of a node and what its attempts have reserved.
type Ledger struct {
	Slots, Cores, MemoryBytes, GPUs Amount
}

// Amount is the quantity of a resource.
type Amount struct{ Total, Used float64 }

// Descriptions of the metrics that are computed at each scrape.
var (
	leaderDesc = prometheus.NewDesc("switchyard_placement_leader", "1 while this process is the leader.", nil, nil)
	tasksDesc  = prometheus.NewDesc("switchyard_placement_tasks", "Tasks that wait for a node, or hold a place on one.", []string{"state"}, nil)
	stuckDesc  = prometheus.NewDesc("switchyard_runs_stuck", "Open runs, and parts of fan-outs, whose workflow task fails repeatedly.", nil, nil)
	lateDesc   = prometheus.NewDesc("switchyard_schedules_late", "Schedules of which no run has completed by the expected time.", nil, nil)
	nodesDesc  = prometheus.NewDesc("switchyard_nodes", "Nodes of the fleet by state.", []string{"state"}, nil)
	beatDesc   = prometheus.NewDesc("switchyard_node_heartbeat_age_seconds", "Age of a node's newest heartbeat.", []string{"node"}, nil)
	slotsDesc  = prometheus.NewDesc("switchyard_node_slots", "Tasks that a node can run at once, and those that hold a place.", []string{"node", "kind"}, nil)
	coresDesc  = prometheus.NewDesc("switchyard_node_cores", "Cores of a node's machine, and cores that attempts have reserved.", []string{"node", "kind"}, nil)
	memoryDesc = prometheus.NewDesc("switchyard_node_memory_bytes", "Memory of a node's machine, and memory that attempts have reserved.", []string{"node", "kind"}, nil)
	gpusDesc   = prometheus.NewDesc("switchyard_node_gpus", "GPUs of a node's machine, and GPUs that attempts have reserved.", []string{"node", "kind"}, nil)
)

// observed collects the metrics that are computed at each scrape.
type observed struct {
	now func() time.Time

	mu    sync.Mutex
	owns  int // number of the current or last term
	fleet func() Fleet
}

// WatchFleet makes each scrape show the fleet until stop is called, which must happen when this process loses the
// placement queue. figures may be called from any goroutine.
func (m *Metrics) WatchFleet(figures func() Fleet) (stop func()) {
	if m == nil {
		return func() {}
	}
	o := m.observed
	o.mu.Lock()
	defer o.mu.Unlock()
	o.owns++
	term := o.owns
	o.fleet = figures
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.owns == term { // otherwise a later term of this process has begun
			o.fleet = nil
		}
	}
}

// Describe sends nothing, because the set of metrics changes over time.
func (o *observed) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (o *observed) Collect(out chan<- prometheus.Metric) {
	o.mu.Lock()
	fleet := o.fleet
	o.mu.Unlock()
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	leader := 0.0
	if fleet != nil {
		leader = 1
		o.collectFleet(fleet(), gauge)
	}
	gauge(leaderDesc, leader)
}

func (o *observed) collectFleet(f Fleet, gauge func(*prometheus.Desc, float64, ...string)) {
	gauge(tasksDesc, float64(f.Waiting), "waiting")
	gauge(tasksDesc, float64(f.Placed), "placed")
	gauge(stuckDesc, float64(f.Stuck))
	gauge(lateDesc, float64(f.LateSchedules))
	// Every state is shown, so that none vanishes from a graph with its last node.
	states := map[string]float64{"active": 0, "stale": 0, "draining": 0, "restarting": 0, "offline": 0}
	for _, n := range f.Nodes {
		states[n.State]++
		if !n.LastBeat.IsZero() {
			gauge(beatDesc, o.now().Sub(n.LastBeat).Seconds(), n.Name)
		}
		if l := n.Ledger; l != nil {
			gauge(slotsDesc, l.Slots.Total, n.Name, "total")
			gauge(slotsDesc, l.Slots.Used, n.Name, "used")
			for desc, amount := range map[*prometheus.Desc]Amount{coresDesc: l.Cores, memoryDesc: l.MemoryBytes, gpusDesc: l.GPUs} {
				gauge(desc, amount.Total, n.Name, "total")
				gauge(desc, amount.Used, n.Name, "reserved")
			}
		}
	}
	for state, n := range states {
		gauge(nodesDesc, n, state)
	}
}
