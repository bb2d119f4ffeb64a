package orchestrator

import (
	"context"
	"fmt"

	"switchyard/activities/grants"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
)

// grant stores grants for nodes that were given tasks of a workflow, which is a run or its child for a part of a fan-out.
// The run learns of its assignments only afterwards, so no node gets a task without a grant.
func (p *Placement) grant(ctx context.Context, workflow, chain string, assigned []*historyv1.Assignment) error {
	if p.grants == nil || len(assigned) == 0 {
		return nil
	}
	run := workflow
	if part, ok := names.ParseFanOutID(workflow); ok {
		run = part.Run
	}
	given := make([]grants.Grant, len(assigned))
	for i, a := range assigned {
		task, _, _ := storekey.ParseInstanceName(a.GetTask())
		given[i] = grants.Grant{Node: a.GetNode(), Run: run, Chain: chain, Task: task}
	}
	if err := p.grants.Put(ctx, given...); err != nil {
		return fmt.Errorf("place tasks of run %s: %w", run, err)
	}
	return nil
}
