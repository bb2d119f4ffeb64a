package runview

import (
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
)

// PartID returns the workflow id of the child that carries a part of a fan-out of a run.
func PartID(run string, p *historyv1.PartitionReport) string {
	return names.FanOut{Run: run, Chain: p.GetChain(), Generation: p.GetGeneration(), Task: p.GetTask(), From: int(p.GetFrom())}.ID()
}
