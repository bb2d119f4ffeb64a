package workers

import (
	"switchyard/activities/metrics"
	v1 "switchyard/proto/switchyard/v1"
)

// ledgerOf returns a node's resources, and what its attempts hold of them, for a metrics scrape.
func ledgerOf(s *v1.NodeSnapshot) *metrics.Ledger {
	return &metrics.Ledger{
		Slots:       metrics.Amount{Total: float64(s.GetMaxParallel()), Used: float64(v1.SlotsTaken(s))},
		Cores:       metrics.Amount{Total: float64(s.GetCpu().GetCores()), Used: s.GetReservedCores()},
		MemoryBytes: metrics.Amount{Total: s.GetMemory().GetTotalMb() * (1 << 20), Used: s.GetReservedMemoryMb() * (1 << 20)},
		GPUs:        metrics.Amount{Total: float64(len(s.GetGpus())), Used: float64(len(s.GetGpus())) - v1.FreeGPUs(s.GetGpus(), s.GetRunning())},
	}
}

// figures returns the state of the fleet for a metrics scrape while this process is the leader.
func (t *term) figures() metrics.Fleet {
	waiting, placed := t.place.Counts()
	return metrics.Fleet{Waiting: waiting, Placed: placed, Stuck: t.stuck.runs(), LateSchedules: t.late.late(), Nodes: t.fleet.figures()}
}
