package web

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

// nodeView is the data of a node page.
type nodeView struct {
	nodeRow
	// Drain is the drain action, or nil if the node is out of service.
	Drain   *Action
	Running []runningRow
	Claims  *v1.GetNodeWorkersResponse
	Ended   []words.StateCount
}

// runningRow is an attempt that occupies resources of the node.
type runningRow struct {
	*v1.RunningAttempt
	Claim *v1.ActiveClaim // nil if the latest heartbeat does not name it
}

// LiveID returns the id of the block.
func (r runningRow) LiveID() string {
	return fmt.Sprintf("attempt-%s-%s-%d", r.GetRunId(), r.GetTask(), r.GetClaim())
}

// Holds describes the resources that the attempt occupies.
func (r runningRow) Holds() string {
	held := []string{plural(figure(r.GetCores()), "core")}
	if r.GetMemoryMb() > 0 {
		held = append(held, figure(r.GetMemoryMb())+" MiB")
	}
	for _, index := range r.GetGpus() {
		held = append(held, fmt.Sprintf("GPU %d", index)+words.GPUPart(r.GetGpuPart()))
	}
	if r.NumaNode != nil {
		held = append(held, fmt.Sprintf("NUMA node %d", r.GetNumaNode()))
	}
	if r.GetRemote() {
		held = append(held, "no slot, because it runs outside the node")
	}
	return strings.Join(held, ", ")
}

// fact is a labelled text about a node.
type fact struct{ Name, Text string }

func openNode(w *Web, req request) viewSource {
	name := req.values["node"]
	return newPolledSource(func(ctx context.Context) (viewData, error) {
		var node *v1.Node
		var claims *v1.GetNodeWorkersResponse
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error {
			res, err := w.services.nodes.GetNode(ctx, connect.NewRequest(&v1.GetNodeRequest{Name: name}))
			if err == nil {
				node = res.Msg.GetNode()
			}
			return err
		})
		group.Go(func() error {
			res, err := w.services.nodes.GetNodeWorkers(ctx, connect.NewRequest(&v1.GetNodeWorkersRequest{Name: name}))
			if err == nil {
				claims = res.Msg
			}
			return err
		})
		if err := group.Wait(); err != nil {
			return viewData{}, err
		}
		return viewData{"Node " + node.GetName(), "node", newNodeView(node, claims, req)}, nil
	})
}

func newNodeView(n *v1.Node, claims *v1.GetNodeWorkersResponse, req request) nodeView {
	view := nodeView{nodeRow: nodeRow{n, nodeAmounts(n), nil}, Claims: claims, Ended: sortedCounts(claims.GetClaimedByStatus())}
	for _, a := range nodeRowActions(n, req) {
		if a.Verb == "drain-node" {
			view.Drain = &a
			continue
		}
		view.Actions = append(view.Actions, a)
	}
	if n.GetState() == v1.NodeOffline {
		return view
	}
	byTask := map[string]*v1.ActiveClaim{}
	for _, c := range claims.GetActiveClaims() {
		byTask[fmt.Sprint(c.GetRunId(), " ", c.GetTaskId(), " ", c.GetClaim())] = c
	}
	for i, r := range n.GetSnapshot().GetRunning() {
		if r.GetRunId() == "" { // belongs to another person's run
			r.Claim = int32(i)
		}
		view.Running = append(view.Running, runningRow{r, byTask[fmt.Sprint(r.GetRunId(), " ", r.GetTask(), " ", r.GetClaim())]})
	}
	return view
}

// sortedCounts returns counts by word: task states first in their usual order, then other words.
func sortedCounts(counts map[string]int32) []words.StateCount {
	found := words.StateCounts(counts)
	order := words.StateOrder()
	for _, word := range slices.Sorted(maps.Keys(counts)) {
		if !slices.Contains(order, word) && counts[word] > 0 {
			found = append(found, words.StateCount{State: word, N: int(counts[word])})
		}
	}
	return found
}

// Load returns the figures of the latest heartbeat.
func (v nodeView) Load() []fact {
	s := v.GetSnapshot()
	if s == nil {
		return nil
	}
	facts := []fact{
		{"Processors", fmt.Sprintf("%.0f%% in use, load %.1f, %s cores reserved", s.GetCpu().GetUsagePercent(), s.GetCpu().GetLoadAvg_1M(), figure(s.GetReservedCores()))},
		{"Memory", fmt.Sprintf("%.0f%% in use, %s of %s GiB available, %s GiB reserved", s.GetMemory().GetUsagePercent(),
			figure(s.GetMemory().GetAvailableMb()/mibPerGiB), figure(s.GetMemory().GetTotalMb()/mibPerGiB), figure(s.GetReservedMemoryMb()/mibPerGiB))},
		{"Disk", fmt.Sprintf("%.0f%% in use, %s of %s GiB free, %.0f%% busy", s.GetDisk().GetUsagePercent(), figure(s.GetDisk().GetAvailableGb()), figure(s.GetDisk().GetTotalGb()), s.GetDisk().GetIoUtilPercent())},
	}
	if network := s.GetNetwork(); network.GetBandwidthMbps() > 0 {
		facts = append(facts, fact{"Network", fmt.Sprintf("%.0f of %.0f Mbit/s", network.GetThroughputMbps(), network.GetBandwidthMbps())})
	} else {
		facts = append(facts, fact{"Network", fmt.Sprintf("%.0f Mbit/s", network.GetThroughputMbps())})
	}
	for _, numa := range s.GetNuma() {
		facts = append(facts, fact{fmt.Sprintf("NUMA node %d", numa.GetIndex()), fmt.Sprintf("%s, %s of %s GiB free",
			plural(len(numa.GetCpus()), "processor"), figure(numa.GetMemoryFreeMb()/mibPerGiB), figure(numa.GetMemoryTotalMb()/mibPerGiB))})
	}
	return facts
}

// Facts returns the properties that do not change with every heartbeat.
func (v nodeView) Facts() []fact {
	s := v.GetSnapshot()
	facts := []fact{
		{"Machine", v.GetMachine()},
		{"In this state since", clock(v.GetStateSince())},
		{"Registered", clock(v.GetRegisteredAt())},
		{"Incarnation", v.GetIncarnation()},
		{"Labels", strings.Join(v.GetLabels(), ", ")},
		{"Capabilities", strings.Join(v.Abilities(), ", ")},
		{"Runs tasks of type", strings.Join(v.GetExecutors(), ", ")},
	}
	if slices.Contains(v.GetExecutors(), v1.TypeContainer) {
		facts = append(facts, fact{"Containers may", containerRights(s.GetContainers())})
	}
	for _, row := range words.Terms(s.GetTerms(), v.GetSetTerms()) {
		facts = append(facts, fact{strings.ToUpper(row[0][:1]) + row[0][1:], row[1]})
	}
	if s.GetGaming() {
		facts = append(facts, fact{"Gaming", "a user is playing on the machine, so its GPUs are in use"})
	}
	if s.GetStoreProblem() != "" {
		facts = append(facts, fact{"Store", "unavailable, so the node gets no tasks: " + words.OneLine(s.GetStoreProblem())})
	}
	if s.GetSpooled() > 0 {
		facts = append(facts, fact{"Kept for the store", plural(s.GetSpooled(), "value") + " until the node reaches its store again"})
	}
	if v.GetSuspicions() > 0 {
		facts = append(facts, fact{"Suspicions", fmt.Sprintf("%d dispatches were moved because the node did not pick them up or start them", v.GetSuspicions())})
	}
	if url := s.GetMetricsUrl(); url != "" {
		facts = append(facts, fact{"Metrics", url})
	}
	return slices.DeleteFunc(facts, func(f fact) bool { return f.Text == "" })
}

// Withheld returns the task types that the node could run but currently does not, each with the reason and the remedy.
func (v nodeView) Withheld() []fact {
	var facts []fact
	withheld := v.GetSnapshot().GetWithheld()
	for _, word := range slices.Sorted(maps.Keys(withheld)) {
		facts = append(facts, fact{word, words.OneLine(withheld[word])})
	}
	return facts
}

// GPUs returns the GPUs of the node with meters for memory and load.
func (v nodeView) GPUs() []gpuRow {
	var rows []gpuRow
	for _, g := range v.GetSnapshot().GetGpus() {
		row := gpuRow{g, amount{"memory", g.GetMemoryUsedMb() / mibPerGiB, g.GetMemoryMb() / mibPerGiB, " GiB"}, amount{"load", g.GetUsagePercent(), 100, "%"}, ""}
		for _, r := range v.Running {
			if slices.Contains(r.GetGpus(), g.GetIndex()) {
				row.HeldBy = strings.TrimPrefix(row.HeldBy+", "+strings.TrimSpace(r.GetRunId()+" "+r.GetTask())+words.GPUPart(r.GetGpuPart()), ", ")
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// gpuRow is a GPU of a node.
type gpuRow struct {
	*v1.GpuSnapshot
	Memory, Load amount
	HeldBy       string
}

// NeighborTexts describes the resources that other nodes on the same machine occupy.
func (v nodeView) NeighborTexts() []fact {
	var facts []fact
	for _, o := range v.GetNeighbors() {
		r := runningRow{RunningAttempt: &v1.RunningAttempt{Cores: o.GetCores(), MemoryMb: o.GetMemoryMb(), Gpus: o.GetGpus()}}
		facts = append(facts, fact{o.GetName(), "holds " + r.Holds()})
	}
	return facts
}

// containerRights describes the special privileges of containers on a node.
func containerRights(p *v1.ContainerPolicy) string {
	var all []string
	if p.GetPrivileged() {
		all = append(all, "be privileged")
	}
	if p.GetHostNetwork() {
		all = append(all, "use the host's network")
	}
	for _, m := range p.GetMounts() {
		text := "mount " + strconv.Quote(m.GetPath())
		if m.GetReadOnly() {
			text += " read-only"
		}
		all = append(all, text)
	}
	for _, name := range p.GetCapabilities() {
		all = append(all, "add "+name)
	}
	if len(all) == 0 {
		return "nothing special"
	}
	return strings.Join(all, ", ")
}
