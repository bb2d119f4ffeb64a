package runview

import (
	"context"
	"log/slog"
	"sync"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"

	"switchyard/gateway/rpcerror"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// Poller keeps the view of one run up to date until the run has ended. Watchers read the changes since their last
// call, so a slow watcher skips intermediate states, does not hold up others and costs no memory.
type Poller struct {
	id       string
	reader   *Reader
	interval time.Duration
	log      *slog.Logger
	cancel   context.CancelFunc
	watchers int // guarded by pollers.mu

	// The state of the last poll, used only by the poller's goroutine.
	runID  string
	events int64

	mu      sync.Mutex
	view    *View
	history int64 // length as of the last poll
	done    bool
	err     error
	changed chan struct{} // closed at the next change
}

// run polls until the run has ended or no longer exists, or ctx is done.
func (p *Poller) run(ctx context.Context) {
	closed := make(chan struct{}, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() { p.awaitClose(ctx, closed) })
	var silentSince time.Time
	var before time.Duration // duration of the previous poll
	for {
		start := time.Now()
		done, err := p.poll(ctx)
		switch {
		case ctx.Err() != nil:
			p.finish(ctx.Err())
			return
		case done || err != nil && rpcerror.IsPermanent(err):
			p.finish(err)
			return
		case err == nil:
			silentSince = time.Time{}
		case silentSince.IsZero():
			silentSince = start
		case time.Since(silentSince) > patience:
			p.log.Warn("a watched run does not answer; is a control worker up?", "run", p.id, "error", err)
			silentSince = time.Now()
		}
		took := time.Since(start)
		pause := p.pause(min(took, before), took)
		if err != nil {
			pause = max(p.interval, retryPause)
		}
		before = took
		select {
		case <-ctx.Done():
		case <-closed:
		case <-time.After(pause):
		}
	}
}

// maxPause bounds the pause between polls that are fast.
const maxPause = time.Second

// pause returns the pause until the next poll. Polling takes at most about a tenth of the time if polls are usually
// slow. A single slow poll, which had to wait for the workflow, does not count.
func (p *Poller) pause(usual, last time.Duration) time.Duration {
	return max(p.interval, min(10*usual, max(maxPause, last)))
}

// awaitClose sends to closed as soon as the run has ended.
func (p *Poller) awaitClose(ctx context.Context, closed chan<- struct{}) {
	for {
		// The error is the outcome of the run, or that the run is unknown; poll distinguishes the two.
		_ = p.reader.client.GetWorkflow(ctx, p.id, "").Get(ctx, nil)
		select {
		case closed <- struct{}{}:
		default:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// poll reads the run once. The state of the workflow follows from its history, so poll queries the workflow only if
// the history has grown.
func (p *Poller) poll(ctx context.Context) (done bool, err error) {
	desc, err := p.reader.Describe(ctx, p.id)
	if err != nil {
		return false, err
	}
	info := desc.GetWorkflowExecutionInfo()
	if !IsOpen(info.GetStatus()) {
		final, err := p.reader.FinalStatus(ctx, desc)
		if err != nil {
			return false, err
		}
		p.publish(func(v *View) { v.Update([]*historyv1.StatusResponse{final}, nil) })
		return true, nil
	}
	problem := p.reader.problem(ctx, desc)
	var answers []*historyv1.StatusResponse
	if runID := info.GetExecution().GetRunId(); runID != p.runID || info.GetHistoryLength() != p.events {
		since, generation := p.view.revision, p.view.Run.GetGeneration()
		if answers, err = p.reader.queryStatus(ctx, info, since); err != nil {
			if problem == "" {
				return false, err
			}
			return false, p.publishStuck(ctx, info, problem)
		}
		if since > 0 && answers[0].GetRun().GetGeneration() != generation {
			if answers, err = p.reader.queryStatus(ctx, info, 0); err != nil {
				return false, err
			}
		}
		p.runID, p.events = runID, info.GetHistoryLength()
	}
	running := RunningAttempts(desc.GetPendingActivities(), time.Now())
	p.publish(func(v *View) {
		v.Update(answers, running)
		v.setProblem(problem)
		p.history = info.GetHistoryLength()
	})
	return false, nil
}

// publishStuck publishes the problem of a run that does not answer, with its last known status.
func (p *Poller) publishStuck(ctx context.Context, info *workflowpb.WorkflowExecutionInfo, problem string) error {
	var known []*historyv1.StatusResponse
	if p.view.version == 0 {
		status, err := p.reader.stuckStatus(ctx, info, problem)
		if err != nil {
			return err
		}
		known = append(known, status)
	}
	p.publish(func(v *View) {
		v.Update(known, v.Running)
		v.setProblem(problem)
	})
	return nil
}

// publish applies a change to the view, and wakes the watchers if the view differs for them.
func (p *Poller) publish(change func(*View)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.view.newest
	change(p.view)
	if p.view.newest > before {
		p.wake()
	}
}

func (p *Poller) finish(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.err = true, err
	p.wake()
}

func (p *Poller) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// Since returns the changes after a version, or everything if version is 0.
func (p *Poller) Since(version int64) Delta {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.view.Since(version)
	n.Done, n.Err, n.Changed, n.History = p.done, p.err, p.changed, p.history
	return n
}

// Check calls check with the view of the run and returns its error. The view does not change during the call.
func (p *Poller) Check(check func(*View) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return check(p.view)
}
