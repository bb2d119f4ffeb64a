package fake

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"switchyard/activities/executor"
)

// Job is an attempt in a Cluster.
type Job struct {
	// Identity is the identity of the attempt, without node, fleet and claim.
	Identity executor.Identity
	// Dispatches are the attempts with which nodes ran or continued the job, in order.
	Dispatches []executor.Attempt
	// Starts counts the starts of the program, and Recorded the calls of Remote.Recorded.
	Starts, Recorded int
	// Stopped reports whether a node has stopped the job.
	Stopped bool
}

// Cluster runs the attempts of the Remotes of several nodes. Its jobs keep running whatever happens to the nodes. Its methods
// are safe for concurrent use.
type Cluster struct {
	mu   sync.Mutex
	jobs map[executor.Identity]*job
	held bool // jobs wait before they start
	// changed is closed and replaced whenever something changes.
	changed chan struct{}
}

type job struct {
	Job
	claim  int32            // of the newest dispatch
	result *executor.Result // nil while it runs
}

// NewCluster returns a Cluster without jobs.
func NewCluster() *Cluster {
	return &Cluster{jobs: map[executor.Identity]*job{}, changed: make(chan struct{})}
}

// Hold makes jobs that have not started yet wait, until it is called with false.
func (c *Cluster) Hold(held bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = held
	c.change()
}

// End ends the running jobs of a task with a result.
func (c *Cluster) End(task string, r executor.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range c.jobs {
		if j.Identity.Task == task && j.result == nil {
			j.result = &r
		}
	}
	c.change()
}

// Jobs returns the jobs of a task, ordered by instance and attempt.
func (c *Cluster) Jobs(task string) []Job {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.jobsOf(task)
}

// Await waits until condition returns true for the jobs of a task, or ctx is done.
func (c *Cluster) Await(ctx context.Context, task string, condition func(jobs []Job) bool) error {
	for {
		c.mu.Lock()
		jobs, changed := c.jobsOf(task), c.changed
		c.mu.Unlock()
		if condition(jobs) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// jobsOf returns the jobs of a task. The caller holds mu.
func (c *Cluster) jobsOf(task string) []Job {
	var jobs []Job
	for _, j := range c.jobs {
		if j.Identity.Task == task {
			copied := j.Job
			copied.Dispatches = slices.Clone(j.Dispatches)
			jobs = append(jobs, copied)
		}
	}
	slices.SortFunc(jobs, func(a, b Job) int {
		return cmp.Or(cmp.Compare(a.Identity.Index, b.Identity.Index), cmp.Compare(a.Identity.Attempt, b.Identity.Attempt))
	})
	return jobs
}

// change wakes the callers that wait for a change. The caller holds mu.
func (c *Cluster) change() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Remote is an executor of one node whose attempts run in a Cluster.
type Remote struct {
	taskType string
	cluster  *Cluster
}

// NewRemote returns an executor for a task type whose attempts run in a cluster.
func NewRemote(taskType string, c *Cluster) *Remote { return &Remote{taskType, c} }

// Type returns the task type given to NewRemote.
func (r *Remote) Type() string { return r.taskType }

// Capabilities says that attempts run outside the node.
func (r *Remote) Capabilities() executor.Capabilities {
	return executor.Capabilities{Recorded: r.Recorded}
}

// jobKey returns the part of an attempt's identity that is the same on any node.
func jobKey(a executor.Attempt) executor.Identity {
	key := a.Identity
	key.Node, key.Fleet, key.Claim = "", "", 0
	return key
}

// Run starts the job of an attempt, or continues it.
func (r *Remote) Run(ctx context.Context, a executor.Attempt, spawned func()) (executor.Result, error) {
	if ctx.Err() != nil || a.Lease.Lost() {
		return executor.Result{ExitCode: -1, Stopped: true}, nil
	}
	c, claim := r.cluster, a.Identity.Claim
	c.mu.Lock()
	defer c.mu.Unlock()
	key := jobKey(a)
	j := c.jobs[key]
	if j == nil {
		j = &job{Job: Job{Identity: key}}
		c.jobs[key] = j
	}
	j.Dispatches, j.claim = append(j.Dispatches, a), max(j.claim, claim)
	c.change()
	for isSpawned := false; ; {
		switch {
		case j.claim > claim:
			return executor.Result{Released: "another node has the Job"}, nil
		case j.result != nil && isSpawned:
			return *j.result, nil
		case ctx.Err() != nil:
			if !errors.Is(context.Cause(ctx), executor.ErrLetGo) {
				j.Stopped, j.result = true, &executor.Result{ExitCode: -1, Stopped: true}
				c.change()
			}
			return executor.Result{ExitCode: -1, Stopped: true}, nil
		case !isSpawned && (j.Starts > 0 || !c.held):
			if j.Starts == 0 {
				j.Starts++
				c.change()
			}
			isSpawned = true
			c.mu.Unlock()
			spawned()
			c.mu.Lock()
			continue
		}
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		c.mu.Lock()
	}
}

// Recorded counts that the end of a job was recorded.
func (r *Remote) Recorded(_ context.Context, a executor.Attempt) error {
	c := r.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if j := c.jobs[jobKey(a)]; j != nil {
		j.Recorded++
		c.change()
	}
	return nil
}
