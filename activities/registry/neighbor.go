package registry

import (
	"context"
	"slices"
	"strings"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// addNeighbors adds to each node what the other nodes of its machine hold, and reduces the node's free amounts
// accordingly. Every node must have its snapshot.
func addNeighbors(nodes []*v1.Node) {
	byMachine := map[string][]*v1.Node{}
	for _, n := range nodes {
		if n.GetMachine() != "" && n.GetState() != v1.NodeOffline {
			byMachine[n.GetMachine()] = append(byMachine[n.GetMachine()], n)
		}
	}
	for _, shared := range byMachine {
		held := make([]*v1.NodeNeighbor, len(shared))
		whole := &v1.NodeNeighbor{}
		var running []*v1.RunningAttempt
		for i, n := range shared {
			held[i] = heldBy(n)
			whole.Cores += held[i].Cores
			whole.MemoryMb += held[i].MemoryMb
			running = append(running, n.GetSnapshot().GetRunning()...)
		}
		for i, n := range shared {
			for k, h := range held {
				if k != i && (h.Cores > 0 || h.MemoryMb > 0 || len(h.Gpus) > 0) {
					n.Neighbors = append(n.Neighbors, h)
				}
			}
			slices.SortFunc(n.Neighbors, func(a, b *v1.NodeNeighbor) int { return strings.Compare(a.GetName(), b.GetName()) })
			limitFree(n.Cores, whole.Cores)
			limitFree(n.MemoryMb, whole.MemoryMb)
			n.Gpus.Free = min(n.GetGpus().GetFree(), v1.FreeGPUs(n.GetSnapshot().GetGpus(), running))
		}
	}
}

// heldBy returns what the attempts of a node hold.
func heldBy(n *v1.Node) *v1.NodeNeighbor {
	h := &v1.NodeNeighbor{Name: n.GetName()}
	for _, r := range n.GetSnapshot().GetRunning() {
		h.Cores += r.GetCores()
		h.MemoryMb += r.GetMemoryMb()
		h.Gpus = append(h.Gpus, r.GetGpus()...)
	}
	slices.Sort(h.Gpus)
	h.Gpus = slices.Compact(h.Gpus) // tasks may share a GPU
	return h
}

// limitFree limits the free part of an amount to the part that is not held.
func limitFree(a *v1.NodeAmount, held float64) { a.Free = max(0, min(a.GetFree(), a.GetTotal()-held)) }

// neighborsOf returns the other registered nodes on a node's machine. It skips nodes that cannot be read.
func (r *Registry) neighborsOf(ctx context.Context, n *v1.Node) (neighbors []*v1.Node) {
	if n.GetMachine() == "" {
		return nil
	}
	records, err := r.Records(ctx)
	if err != nil {
		return nil // best effort: the caller asked for the node
	}
	for name, record := range records {
		if name == n.GetName() || record.GetRegistration().GetSnapshot().GetMachine() != n.GetMachine() {
			continue
		}
		if e, err := r.Entry(ctx, name); err == nil {
			neighbors = append(neighbors, View(e, time.Now(), nil, ""))
		}
	}
	return neighbors
}
