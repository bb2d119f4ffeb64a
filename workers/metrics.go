package workers

import (
	"switchyard/activities/metrics"
	"switchyard/workers/node"
)

// ledgerFigures are what a scrape shows of a node's ledger.
func ledgerFigures(l *node.Ledger) metrics.Ledger {
	total, reserved := l.Machine().Total(), l.Reserved()
	return metrics.Ledger{
		Slots:       metrics.Amount{Total: float64(l.Slots()), Used: float64(len(l.Running()))},
		Cores:       metrics.Amount{Total: total.Cores, Used: reserved.Cores},
		MemoryBytes: metrics.Amount{Total: total.MemoryMB * (1 << 20), Used: reserved.MemoryMB * (1 << 20)},
		GPUs:        metrics.Amount{Total: float64(len(total.GPUs)), Used: float64(len(reserved.GPUs))},
	}
}

// figures are what a scrape shows of the fleet while this process owns the queue.
func (t *term) figures() metrics.Fleet {
	waiting, placed := t.place.Counts()
	return metrics.Fleet{Waiting: waiting, Placed: placed, Stuck: t.stuck.runs(), Nodes: t.fleet.figures()}
}
