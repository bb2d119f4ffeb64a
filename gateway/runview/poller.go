package runview

import (
	"context"
	"log/slog"
	"sync"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// Poller keeps the view of one run up to date until the run has ended. Watchers read what has changed since they last
// looked: one that looks seldom sees the newest state only, holds up no other and costs no memory.
type Poller struct {
	id       string
	reader   *Reader
	interval time.Duration
	log      *slog.Logger
	cancel   context.CancelFunc
	watchers int // guarded by pollers.mu

	// What the poller's own goroutine remembers of its last look.
	runID  string
	events int64

	mu      sync.Mutex
	view    *View
	history int64 // length, when the run was last looked at
	done    bool
	err     error
	changed chan struct{} // closed at the next change
}

// run polls until the run has ended, has gone, or ctx is done.
func (p *Poller) run(ctx context.Context) {
	closed := make(chan struct{}, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() { p.awaitClose(ctx, closed) })
	var silentSince time.Time
	var before time.Duration // what the look before took
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

// maxPause is the longest wait between looks that do not take long themselves.
const maxPause = time.Second

// pause is the wait until the next look. Looks that usually take some time get a
// tenth of the time; a single slow one, which waited for the workflow, does not count.
func (p *Poller) pause(usual, last time.Duration) time.Duration {
	return max(p.interval, min(10*usual, max(maxPause, last)))
}

// awaitClose sends to closed when the run has ended; Temporal answers at once then.
func (p *Poller) awaitClose(ctx context.Context, closed chan<- struct{}) {
	for {
		// The error is how the run ended, or that it is not known; poll finds out which.
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

// poll looks once. What the workflow says follows from its history, so it is
// asked only when that has grown.
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
		p.publish(func(v *View) { v.Update([]*v1.StatusResponse{final}, nil) })
		return true, nil
	}
	problem := p.reader.problem(ctx, desc)
	var answers []*v1.StatusResponse
	if runID := info.GetExecution().GetRunId(); runID != p.runID || info.GetHistoryLength() != p.events {
		since, generation := p.view.revision, p.view.Run.GetGeneration()
		if answers, err = p.reader.ask(ctx, info, since); err != nil {
			if problem == "" {
				return false, err
			}
			return false, p.publishStuck(ctx, info, problem)
		}
		if since > 0 && answers[0].GetRun().GetGeneration() != generation {
			if answers, err = p.reader.ask(ctx, info, 0); err != nil {
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

// publishStuck shows the problem of a run that does not answer, and what is known of it.
func (p *Poller) publishStuck(ctx context.Context, info *workflowpb.WorkflowExecutionInfo, problem string) error {
	var known []*v1.StatusResponse
	if p.view.version == 0 {
		status, err := p.reader.stuck(ctx, info, problem)
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

// publish changes the view and wakes the watchers if they would see a difference.
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

// Since returns what is newer than a version, or everything if the version is 0.
func (p *Poller) Since(version int64) Delta {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.view.Since(version)
	n.Done, n.Err, n.Changed, n.History = p.done, p.err, p.changed, p.history
	return n
}

// Check calls check with the view of the run and returns its error. The view does not change meanwhile.
func (p *Poller) Check(check func(*View) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return check(p.view)
}
