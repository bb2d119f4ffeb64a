package placement

import (
	"fmt"
	"maps"
	"slices"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// model is a naive placement queue. It keeps flat lists, recomputes everything each time, and tries
// every node for every request.
type model struct {
	clock   *clock
	nodes   map[string]Node                 // present nodes
	machine map[string]string               // of every node that has ever existed
	foreign map[string][]*v1.RunningAttempt // by node
	claims  map[string]*modelClaim          // newest claim, by run and task
	gone    map[string]int32                // newest released claim, by run and task
	stale   map[string][]*v1.RunningAttempt // released claims that snapshots may still show
	mean    map[string]time.Duration        // mean attempt duration by node
	refused map[string][]string             // what a node has refused since its last heartbeat
	health  map[string]*modelHealth         // by node
	beats   int64
	seq     int
}

type modelHealth struct {
	failures []time.Time // since the last completed attempt
	benches  int
	until    time.Time
}

type modelClaim struct {
	run   string
	req   *historyv1.TaskRequest
	seq   int
	from  time.Time // earliest placement
	node  string    // "" while it waits
	at    time.Time
	grant grant
	seen  bool
}

func newModel(c *clock) *model {
	return &model{
		clock: c, nodes: map[string]Node{}, machine: map[string]string{}, foreign: map[string][]*v1.RunningAttempt{},
		claims: map[string]*modelClaim{}, gone: map[string]int32{}, stale: map[string][]*v1.RunningAttempt{},
		mean: map[string]time.Duration{}, refused: map[string][]string{}, health: map[string]*modelHealth{},
	}
}

func (c *modelClaim) cores() float64 {
	if c.req.Resources.Cores == nil {
		return 1
	}
	return *c.req.Resources.Cores
}

// asks returns a text that is equal for claims to which the same refusal applies.
func (c *modelClaim) asks() string { return fmt.Sprint(c.req.Constraints, c.req.Resources) }

// shown returns the claim as a snapshot of its node shows it.
func (c *modelClaim) shown() *v1.RunningAttempt {
	a := &v1.RunningAttempt{RunId: c.run, Task: c.req.Task, Claim: c.req.Claim, Cores: c.cores(),
		MemoryMb: float64(c.req.Resources.MemoryMb), Gpus: c.grant.gpus, GpuPart: c.grant.gpuPart}
	if c.grant.numa >= 0 {
		numa := int32(c.grant.numa)
		a.NumaNode = &numa
	}
	return a
}

func (m *model) request(runID string, req *historyv1.TaskRequest) {
	id := runID + "/" + req.Task
	if last, ok := m.gone[id]; ok && req.Claim <= last {
		return
	}
	if old := m.claims[id]; old != nil {
		if old.req.Claim >= req.Claim {
			return
		}
		m.end(id, "")
	}
	m.seq++
	c := &modelClaim{run: runID, req: req, seq: m.seq, from: m.clock.now()}
	for range req.Refusals - 1 {
		c.from = c.from.Add(100 * time.Millisecond) // 100 ms, then 200 ms: the test draws no more refusals
	}
	m.claims[id] = c
}

func (m *model) release(runID, task string, claim int32, outcome string) {
	id := runID + "/" + task
	if last, ok := m.gone[id]; !ok || claim > last {
		m.gone[id] = claim
	}
	c := m.claims[id]
	if c == nil || c.req.Claim > claim {
		return
	}
	if c.req.Claim < claim || c.node == "" {
		outcome = ""
	}
	m.end(id, outcome)
}

func (m *model) end(id, outcome string) {
	c := m.claims[id]
	delete(m.claims, id)
	if c.node == "" {
		return
	}
	switch outcome {
	case "refused":
		m.refused[c.node] = append(m.refused[c.node], c.asks())
	case "done":
		delete(m.health, c.node)
	case "system":
		m.fail(c)
	}
	if outcome == "done" || outcome == "" {
		took := m.clock.now().Sub(c.at)
		if mean, ok := m.mean[c.node]; ok {
			took = mean + time.Duration(0.2*float64(took-mean))
		}
		m.mean[c.node] = took
	}
	m.stale[c.node] = append(m.stale[c.node], c.shown())
	m.forgetGone(c.node)
}

func (m *model) fail(c *modelClaim) {
	h := m.health[c.node]
	if h == nil {
		h = &modelHealth{}
		m.health[c.node] = h
	}
	if k := len(h.failures); k > 0 && c.at.Before(h.failures[k-1]) {
		return
	}
	h.failures = append(h.failures, m.clock.now())
	recent := 0
	for _, at := range h.failures {
		if m.clock.now().Sub(at) <= 5*time.Minute {
			recent++
		}
	}
	if recent >= 3 {
		h.until = m.clock.now().Add(min(30*time.Second*time.Duration(1<<h.benches), 10*time.Minute))
		h.benches++
	}
}

func (m *model) forgetGone(node string) {
	if _, present := m.nodes[node]; !present && len(m.on(node)) == 0 {
		delete(m.mean, node)
		delete(m.stale, node)
		delete(m.refused, node)
	}
}

func (m *model) on(node string) []*modelClaim {
	var out []*modelClaim
	for _, c := range m.claims {
		if c.node == node {
			out = append(out, c)
		}
	}
	return out
}

// sortedOn returns the claims on a node in a fixed order.
func (m *model) sortedOn(node string) []*modelClaim {
	return slices.SortedFunc(slices.Values(m.on(node)), func(a, b *modelClaim) int { return a.seq - b.seq })
}

// sharers returns all attempts that hold something on the node's machine.
func (m *model) sharers(node string) []*v1.RunningAttempt {
	var out []*v1.RunningAttempt
	for _, c := range m.claims {
		if c.node != "" && m.machine[c.node] == m.machine[node] {
			out = append(out, c.shown())
		}
	}
	for other := range m.nodes {
		if m.machine[other] == m.machine[node] {
			out = append(out, m.foreign[other]...)
		}
	}
	return out
}

// suitingGPUs returns the indices of the GPUs that would do for the claim if they were free.
func (m *model) suitingGPUs(c *modelClaim, node string) []int32 {
	var out []int32
	for _, g := range m.nodes[node].Snapshot.Gpus {
		if g.MemoryMb >= float64(c.req.Resources.GpuMemoryMb) && (c.req.Resources.GpuModel == "" || c.req.Resources.GpuModel == g.Name) {
			out = append(out, g.Index)
		}
	}
	return out
}

// isPart reports whether the claim asks for a part of a GPU.
func (c *modelClaim) isPart() bool {
	gpus, memory := c.req.Resources.Gpus, c.req.Resources.GpuMemoryMb
	return gpus > 0 && gpus < 1 || gpus == 0 && memory > 0
}

// freeGPUs returns the indices of the GPUs that have room for the claim.
func (m *model) freeGPUs(c *modelClaim, node string) []int32 {
	n := m.nodes[node].Snapshot
	var out []int32
	for _, index := range m.suitingGPUs(c, node) {
		share, memory := c.req.Resources.Gpus, float64(c.req.Resources.GpuMemoryMb)
		fits := !n.Gaming
		for _, a := range m.sharers(node) {
			switch {
			case !slices.Contains(a.Gpus, index):
			case a.GpuPart == nil || !c.isPart():
				fits = false
			default:
				share += float64(a.GpuPart.Thousandths) / 1000
				memory += float64(a.GpuPart.MemoryMb)
			}
		}
		total := n.Gpus[slices.IndexFunc(n.Gpus, func(g *v1.GpuSnapshot) bool { return g.Index == index })].MemoryMb
		if fits && (!c.isPart() || (c.req.Resources.Gpus == 0 || share < 1.0001) && (c.req.Resources.GpuMemoryMb == 0 || memory <= total)) {
			out = append(out, index)
		}
	}
	return out
}

// gpuRoom returns the share of a GPU that no part on it holds, and whether nothing holds any of it.
func (m *model) gpuRoom(node string, index int32) (share float64, free bool) {
	share, free = 1, true
	for _, a := range m.sharers(node) {
		if slices.Contains(a.Gpus, index) {
			share, free = share-a.GpuPart.Share(), false
		}
	}
	return share, free
}

// numaRoom reports whether a NUMA node has room for the claim beside what is already bound to it.
func (m *model) numaRoom(c *modelClaim, node string, index int) bool {
	cores, memory := c.cores(), float64(c.req.Resources.MemoryMb)
	for _, a := range m.sharers(node) {
		if a.NumaNode != nil && int(*a.NumaNode) == index {
			cores += a.Cores
			memory += a.MemoryMb
		}
	}
	for _, p := range m.nodes[node].Snapshot.Numa {
		if int(p.Index) == index {
			return cores <= float64(len(p.Cpus)) && memory <= p.MemoryTotalMb
		}
	}
	return len(m.nodes[node].Snapshot.Numa) == 0 && index == 0 // a machine without NUMA nodes is node 0
}

func (m *model) target(c *modelClaim) (t Target, gpus int) {
	t, _ = ParseTarget(c.req.Constraints.TargetNode)
	if t.NUMA < 0 && c.req.Resources.NumaNode != nil {
		t.NUMA = int(*c.req.Resources.NumaNode)
	}
	if c.isPart() {
		return t, 1
	}
	return t, max(t.GPUs, int(c.req.Resources.Gpus))
}

func (m *model) stretch(c *modelClaim, node string) int {
	mean, ok := m.mean[node]
	if t, gpus := m.target(c); gpus > 0 || t.NUMA >= 0 || !ok || mean >= time.Second {
		return 1
	}
	for _, c := range m.on(node) {
		if m.clock.now().Sub(c.at) >= time.Second {
			return 1
		}
	}
	return 2
}

// could reports whether the claim could ever use the node.
func (m *model) could(c *modelClaim, name string) bool {
	n, con := m.nodes[name].Snapshot, c.req.Constraints
	for _, l := range con.NodeLabels {
		if !slices.Contains(n.Labels, l) {
			return false
		}
	}
	if len(con.AllowedNodes) > 0 && !slices.Contains(con.AllowedNodes, name) || slices.Contains(con.ForbiddenNodes, name) {
		return false
	}
	t, gpus := m.target(c)
	for _, index := range t.GPUIndices {
		if !slices.Contains(m.suitingGPUs(c, name), int32(index)) {
			return false
		}
	}
	if t.NUMA >= 0 && (t.NUMA > 0 || len(n.Numa) > 0) {
		i := slices.IndexFunc(n.Numa, func(p *v1.NumaSnapshot) bool { return int(p.Index) == t.NUMA })
		if i < 0 || c.cores() > float64(len(n.Numa[i].Cpus)) || float64(c.req.Resources.MemoryMb) > n.Numa[i].MemoryTotalMb {
			return false
		}
	}
	return (t.Node == "" || t.Node == name) && c.cores() <= float64(n.Cpu.Cores) && gpus <= len(m.suitingGPUs(c, name)) &&
		float64(c.req.Resources.MemoryMb) <= n.Memory.TotalMb && m.nodes[name].State != v1.NodeOffline
}

// room reports whether the claim fits the node, and whether it would only wait there ahead of time.
func (m *model) room(c *modelClaim, name string) (fits, ahead bool) {
	n, con, res := m.nodes[name].Snapshot, c.req.Constraints, c.req.Resources
	h := m.health[name]
	if !m.could(c, name) || m.nodes[name].State != v1.NodeActive || n.Draining ||
		h != nil && m.clock.now().Before(h.until) || slices.Contains(m.refused[name], c.asks()) {
		return false, false
	}
	here := m.on(name)
	ofRun := 0
	for _, o := range here {
		if o.run == c.run {
			ofRun++
		}
	}
	for _, f := range m.foreign[name] {
		if f.RunId == c.run {
			ofRun++
		}
	}
	if con.MaxParallelPerNode > 0 && ofRun >= int(con.MaxParallelPerNode) {
		return false, false
	}
	var cores, memory float64
	for _, a := range m.sharers(name) {
		cores += a.Cores
		memory += a.MemoryMb
	}
	unseen := 0.0
	for _, o := range m.claims {
		if o.node != "" && m.machine[o.node] == m.machine[name] && !o.seen {
			unseen += float64(o.req.Resources.MemoryMb)
		}
	}
	asked := float64(res.MemoryMb)
	if asked > 0 && (memory+asked > n.Memory.TotalMb || unseen+asked > n.Memory.AvailableMb) {
		return false, false
	}
	t, gpus := m.target(c)
	if free := m.freeGPUs(c, name); gpus > 0 && (len(free) < gpus ||
		slices.ContainsFunc(t.GPUIndices, func(i int) bool { return !slices.Contains(free, int32(i)) })) {
		return false, false
	}
	if t.NUMA >= 0 && !m.numaRoom(c, name, t.NUMA) {
		return false, false
	}
	total := float64(n.Cpu.Cores)
	fitsIn := func(k int) bool {
		return len(here)+len(m.foreign[name]) < k*int(n.MaxParallel) &&
			(c.cores() == 0 || cores+c.cores() <= float64(k)*total)
	}
	return fitsIn(m.stretch(c, name)), !fitsIn(1)
}

// mayWait reports whether the claim may wait on the node ahead of time.
func (m *model) mayWait(c *modelClaim, name string) bool {
	for _, o := range m.claims {
		if o.node == name && o.req.Priority != c.req.Priority ||
			o.node == "" && !m.clock.now().Before(o.from) && o.req.Priority > c.req.Priority && m.could(o, name) {
			return false
		}
	}
	return true
}

// waiting returns the claims that are due for placement, in the order of the queue.
func (m *model) waiting() []string {
	var queue []string
	for id, c := range m.claims {
		if c.node == "" && !m.clock.now().Before(c.from) {
			queue = append(queue, id)
		}
	}
	slices.SortFunc(queue, func(x, y string) int {
		a, b := m.claims[x], m.claims[y]
		if a.req.Priority != b.req.Priority {
			return int(b.req.Priority - a.req.Priority)
		}
		if d := a.req.QueuedAt.AsTime().Compare(b.req.QueuedAt.AsTime()); d != 0 {
			return d
		}
		return a.seq - b.seq
	})
	return queue
}

// best returns the node that the claim must be assigned to, or "" if there is none.
func (m *model) best(c *modelClaim) string {
	weights := DefaultWeights()
	best, bestRank := "", [4]float64{}
	for _, name := range slices.Sorted(maps.Keys(m.nodes)) {
		fits, ahead := m.room(c, name)
		if !fits || ahead && !m.mayWait(c, name) {
			continue
		}
		t, gpus := m.target(c)
		tasks := float64(len(m.on(name)) + len(m.foreign[name]))
		// Use the same sum as the queue, so that equal scores are equal to the last bit.
		score := figuresOf(m.nodes[name].Snapshot, &weights).sum(gpus > 0) - weights.Task*tasks
		if t.Node != "" {
			score = 0
		}
		rank := [4]float64{0, 0, score, -tasks}
		if !slices.Contains(c.req.AvoidNodes, name) {
			rank[0] = 1
		}
		if !ahead {
			rank[1] = 1
		}
		if best == "" || slices.Compare(rank[:], bestRank[:]) > 0 {
			best, bestRank = name, rank
		}
	}
	return best
}

// checkGrant returns an error if the grant of a claim on a node is invalid.
func (m *model) checkGrant(c *modelClaim, name string, g grant) error {
	t, gpus := m.target(c)
	free := m.freeGPUs(c, name)
	for i, index := range g.gpus {
		if !slices.Contains(free, index) || slices.Contains(g.gpus[:i], index) {
			return fmt.Errorf("GPUs %v, of which %v are free", g.gpus, free)
		}
	}
	for _, index := range t.GPUIndices {
		if !slices.Contains(g.gpus, int32(index)) {
			return fmt.Errorf("GPUs %v, and not the %v asked for", g.gpus, t.GPUIndices)
		}
	}
	if c.isPart() && t.NUMA < 0 && len(g.gpus) == 1 {
		share, untouched := m.gpuRoom(name, g.gpus[0])
		for _, index := range free {
			if other, otherUntouched := m.gpuRoom(name, index); untouched && !otherUntouched || untouched == otherUntouched && other < share-0.0001 {
				return fmt.Errorf("a part of GPU %v, although GPU %d has less room and fits", g.gpus, index)
			}
		}
	}
	switch {
	case len(g.gpus) != gpus:
		return fmt.Errorf("GPUs %v, want %d", g.gpus, gpus)
	case c.isPart() != (g.gpuPart != nil):
		return fmt.Errorf("the part %v", g.gpuPart)
	case t.NUMA >= 0 && g.numa != t.NUMA:
		return fmt.Errorf("NUMA node %d, want %d", g.numa, t.NUMA)
	case g.numa >= 0 && !m.numaRoom(c, name, g.numa):
		return fmt.Errorf("NUMA node %d has no room", g.numa)
	}
	return nil
}

// place assigns each waiting claim, in order, to the best node. granted returns the grant that the
// queue has chosen.
func (m *model) place(granted func(id string) grant) (map[string]string, error) {
	out := map[string]string{}
	for _, id := range m.waiting() {
		c := m.claims[id]
		best := m.best(c)
		if best == "" {
			continue
		}
		c.grant = granted(id)
		if err := m.checkGrant(c, best, c.grant); err != nil {
			return out, fmt.Errorf("%s on %s got %w", id, best, err)
		}
		c.node, c.at, c.seen = best, m.clock.now(), false
		out[id] = best
	}
	return out, nil
}
