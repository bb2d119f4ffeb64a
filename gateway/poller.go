package gateway

import (
	"context"
	"log/slog"
	"sync"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"

	v1 "switchyard/proto/switchyard/v1"
)

// poller keeps the view of one run up to date until the run has ended. Watchers
// read what has changed since they last looked: whoever looks seldom sees the
// newest state only, holds up nobody and costs no memory.
type poller struct {
	id       string
	reader   *reader
	interval time.Duration
	log      *slog.Logger
	cancel   context.CancelFunc
	watchers int // guarded by pollers.mu

	// What the poller's own goroutine remembers of its last look.
	runID  string
	events int64

	mu      sync.Mutex
	view    *view
	done    bool
	err     error
	changed chan struct{} // closed at the next change
}

// run polls until the run has ended, has gone, or ctx is done.
func (p *poller) run(ctx context.Context) {
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
		case done || err != nil && lasting(err):
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
func (p *poller) pause(usual, last time.Duration) time.Duration {
	return max(p.interval, min(10*usual, max(maxPause, last)))
}

// awaitClose sends to closed when the run has ended; Temporal answers at once then.
func (p *poller) awaitClose(ctx context.Context, closed chan<- struct{}) {
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
func (p *poller) poll(ctx context.Context) (done bool, err error) {
	desc, err := p.reader.describe(ctx, p.id)
	if err != nil {
		return false, err
	}
	info := desc.GetWorkflowExecutionInfo()
	if !isOpen(info.GetStatus()) {
		final, err := p.reader.final(ctx, desc)
		if err != nil {
			return false, err
		}
		p.publish(func(v *view) { v.update([]*v1.StatusResponse{final}, nil) })
		return true, nil
	}
	problem := p.reader.problem(ctx, desc)
	var answers []*v1.StatusResponse
	if runID := info.GetExecution().GetRunId(); runID != p.runID || info.GetHistoryLength() != p.events {
		since, generation := p.view.revision, p.view.run.GetGeneration()
		if answers, err = p.reader.ask(ctx, p.id, since); err != nil {
			if problem == "" {
				return false, err
			}
			return false, p.publishStuck(ctx, info, problem)
		}
		if since > 0 && answers[0].GetRun().GetGeneration() != generation {
			if answers, err = p.reader.ask(ctx, p.id, 0); err != nil {
				return false, err
			}
		}
		p.runID, p.events = runID, info.GetHistoryLength()
	}
	running := runningAttempts(desc.GetPendingActivities())
	p.publish(func(v *view) {
		v.update(answers, running)
		v.setProblem(problem)
	})
	return false, nil
}

// publishStuck shows the problem of a run that does not answer, and what is known of it.
func (p *poller) publishStuck(ctx context.Context, info *workflowpb.WorkflowExecutionInfo, problem string) error {
	var known []*v1.StatusResponse
	if p.view.version == 0 {
		status, err := p.reader.stuck(ctx, info, problem)
		if err != nil {
			return err
		}
		known = append(known, status)
	}
	p.publish(func(v *view) {
		v.update(known, v.running)
		v.setProblem(problem)
	})
	return nil
}

// publish changes the view and wakes the watchers if they would see a difference.
func (p *poller) publish(change func(*view)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.view.newest
	change(p.view)
	if p.view.newest > before {
		p.wake()
	}
}

func (p *poller) finish(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.err = true, err
	p.wake()
}

func (p *poller) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// since returns what is newer than a version; 0: everything.
func (p *poller) since(version int64) news {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.view.since(version)
	n.done, n.err, n.changed = p.done, p.err, p.changed
	return n
}

// look lets check look at the run as it is, and returns what it says.
func (p *poller) look(check func(*view) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return check(p.view)
}
