package tasklist

import (
	"context"
	"sync"

	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

// maxCachedTasks bounds the tasks whose needs are kept in memory, of all runs.
const maxCachedTasks = 50_000

// taskNeeds is what the definition of a run says about the start of a task.
type taskNeeds struct {
	priority int32
	demand   *v1.TaskDemand // or nil if the task needs no node
}

// needsCache keeps what definitions say about the tasks of runs. A run keeps the definition that it was started with, so that
// nothing in the cache grows old. It is safe for concurrent use.
type needsCache struct {
	runs *runview.Reader

	mu    sync.Mutex
	known map[string]map[string]taskNeeds // by run and task
	order []string                        // of the runs, the oldest first
	tasks int
}

// of returns the needs of the tasks of a run by name. A run that has not read its definition yet has none.
func (c *needsCache) of(ctx context.Context, run string) (map[string]taskNeeds, error) {
	c.mu.Lock()
	known := c.known[run]
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	desc, err := c.runs.Describe(ctx, run)
	if err != nil {
		return nil, err
	}
	in, err := c.runs.Input(ctx, desc.GetWorkflowExecutionInfo().GetExecution())
	if err != nil || in.GetDefinition() == nil {
		return nil, err
	}
	needs := make(map[string]taskNeeds, len(in.GetDefinition().GetTasks()))
	for name, task := range in.GetDefinition().GetTasks() {
		needs[name] = taskNeeds{task.GetPriority(), demandOf(task)}
	}
	c.add(run, needs)
	return needs, nil
}

// add keeps the needs of a run, in place of those of the oldest runs if there are too many.
func (c *needsCache) add(run string, needs map[string]taskNeeds) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[run] != nil {
		return
	}
	if c.known == nil {
		c.known = map[string]map[string]taskNeeds{}
	}
	c.known[run] = needs
	c.order = append(c.order, run)
	c.tasks += len(needs)
	for c.tasks > maxCachedTasks && len(c.order) > 1 {
		oldest := c.order[0]
		c.order = c.order[1:]
		c.tasks -= len(c.known[oldest])
		delete(c.known, oldest)
	}
}
