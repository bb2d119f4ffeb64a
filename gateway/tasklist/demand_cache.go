package tasklist

import (
	"context"
	"sync"

	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

// maxCachedTasks bounds the number of tasks in the cache, over all runs.
const maxCachedTasks = 50_000

// taskNeeds holds the scheduling part of a task's definition.
type taskNeeds struct {
	priority int32
	demand   *v1.TaskDemand // nil if the task needs no node
}

// needsCache caches the needs of the tasks of runs. The definition of a run never changes, so entries do not become stale. It
// is safe for concurrent use.
type needsCache struct {
	runs *runview.Reader

	mu    sync.Mutex
	known map[string]map[string]taskNeeds // by run and task
	order []string                        // of the runs, the oldest first
	tasks int
}

// get returns the needs of the tasks of a run, by name, or nil if the run has not read its definition yet.
func (c *needsCache) get(ctx context.Context, run string) (map[string]taskNeeds, error) {
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
	needs := make(map[string]taskNeeds, v1.CountTasks(in.GetDefinition()))
	for name, task := range v1.AllTasks(in.GetDefinition()) {
		needs[name] = taskNeeds{task.GetPriority(), demandOf(task)}
	}
	c.add(run, needs)
	return needs, nil
}

// add caches the needs of a run, and evicts the oldest runs beyond the limit.
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
