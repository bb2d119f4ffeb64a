package tasklist

import (
	"cmp"
	"math"

	v1 "switchyard/proto/switchyard/v1"
)

// addAsked adds the demand of a group to the totals.
func addAsked(res *v1.GetQueueResponse, g *v1.QueueGroup) {
	d := g.GetDemand()
	if d == nil || d.GetRemote() || !v1.WaitsForNode(g.GetReason()) {
		return
	}
	n := float64(g.GetCount())
	res.Slots.Asked += n
	res.Cores.Asked += n * d.GetCores()
	res.MemoryMb.Asked += n * float64(d.GetMemoryMb())
	res.Gpus.Asked += n * d.GPUAmount()
}

// addFleet sets the total and free amounts of the active nodes. Nodes on the same machine share its resources, so for each
// machine the largest amount of any of its nodes counts. Slots are counted per node.
func addFleet(res *v1.GetQueueResponse, nodes []*v1.Node) {
	res.Slots, res.Cores, res.MemoryMb, res.Gpus = &v1.QueueAmount{}, &v1.QueueAmount{}, &v1.QueueAmount{}, &v1.QueueAmount{}
	type machine struct{ cores, memory, gpus v1.NodeAmount }
	machines := map[string]*machine{}
	widen := func(of *v1.NodeAmount, n *v1.NodeAmount) {
		of.Total, of.Free = max(of.GetTotal(), n.GetTotal()), max(of.GetFree(), n.GetFree())
	}
	for _, n := range nodes {
		if n.GetState() != v1.NodeActive {
			continue
		}
		res.Slots.Total += float64(n.GetMaxParallel())
		res.Slots.Free += float64(max(0, n.GetMaxParallel()-n.GetRunning()))
		name := cmp.Or(n.GetMachine(), n.GetName())
		if machines[name] == nil {
			machines[name] = &machine{}
		}
		m := machines[name]
		widen(&m.cores, n.GetCores())
		widen(&m.memory, n.GetMemoryMb())
		widen(&m.gpus, n.GetGpus())
	}
	sum := func(of *v1.QueueAmount, n *v1.NodeAmount) {
		of.Total += n.GetTotal()
		of.Free += max(0, n.GetFree())
	}
	for _, m := range machines {
		sum(res.Cores, &m.cores)
		m.memory.Total, m.memory.Free = math.Floor(m.memory.GetTotal()), math.Floor(m.memory.GetFree()) // tasks ask for whole MiB
		sum(res.MemoryMb, &m.memory)
		sum(res.Gpus, &m.gpus)
	}
}
