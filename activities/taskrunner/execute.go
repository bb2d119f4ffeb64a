package taskrunner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"

	"switchyard/activities/executor"
	"switchyard/activities/heartbeat"
	"switchyard/activities/logs"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/phrase"
)

const (
	// prepareSilence is the longest time between two signs that something the attempt needs, such as an image, is being
	// fetched, or between the last sign and the start of its process.
	prepareSilence = 6 * time.Minute
	// stopGrace is the time between SIGTERM and SIGKILL.
	stopGrace = 10 * time.Second
	// cleanupTimeout bounds the work after the task's process has ended.
	cleanupTimeout = 30 * time.Second
)

// Execute runs one attempt of a task and returns how it ended, once nothing of it is left. Cancelling the activity stops
// the attempt. If an earlier attempt has completed the task without reporting it, Execute returns that result. A batch of
// instances runs as one attempt (see runBatch). If the attempt is detached, Execute returns early, and the call that
// reattaches the attempt returns the answer.
func (n *Node) Execute(ctx context.Context, req *v1.ExecuteRequest) (*v1.ExecuteResponse, error) {
	followReset(req, activity.GetInfo(ctx).WorkflowExecution.RunID)
	return activityEnd(n.executeFrom(ctx, deliveryOf(ctx), req))
}

// followReset makes an attempt work for the execution of its activity. After a reset, an activity that was scheduled but
// not started belongs to the new execution, while its request still names the terminated one.
func followReset(req *v1.ExecuteRequest, execution string) {
	if req.GetExecution() != "" && req.GetExecution() != execution {
		req.Chain, req.Execution = execution, execution // the first execution after a reset names the chain
	}
}

func (n *Node) executeFrom(ctx context.Context, d delivery, req *v1.ExecuteRequest) (*v1.ExecuteResponse, error) {
	if req.GetReattach() {
		key := keyOf(req, membersOf(req))
		switch err := n.awaitRecovered(ctx, d, req, key); err {
		case nil:
		case errLetGo:
			return nil, err
		default:
			return &v1.ExecuteResponse{State: v1.TaskCancelled, Reason: v1.ReasonCancelled, Node: n.Name}, nil
		}
		if a := n.attempts.find(key); a != nil {
			left := a.reattach(d.token)
			if req.GetStop() {
				a.stop(heartbeat.ErrCancelled)
			}
			return a.awaitEnd(ctx, left)
		}
		return n.lostAnswer(ctx, d.heartbeat, req)
	}
	own, a := n.accept(context.WithoutCancel(ctx), d, req)
	n.Metrics.Claimed(n.Name)
	if ctx.Err() != nil {
		a.stop(context.Cause(ctx))
	}
	go a.runToEnd(own)
	return a.awaitEnd(ctx, a.first)
}

func (n *Node) execute(ctx context.Context, a *attempt) (*v1.ExecuteResponse, error) {
	req := a.req
	if want := req.GetIncarnation(); want != "" && n.Incarnation != "" && want != n.Incarnation {
		return moved(v1.ReasonIncarnation, fmt.Sprintf("node %s was started again since", n.Name)), nil
	}
	exec := n.Executors[req.GetType()]
	if exec == nil {
		return moved(v1.ReasonNoExecutor, fmt.Sprintf("node %s runs no tasks of type %s", n.Name, req.GetType())), nil
	}
	if n.recovery.Load().isSearching(req.GetType()) {
		return moved(v1.ReasonNoExecutor, fmt.Sprintf("node %s is looking for what its earlier worker has left", n.Name)), nil
	}
	if ctx.Err() != nil {
		return stopped(ctx, nil), nil
	}
	release, err := n.Room.Acquire(ctx, req)
	switch late := context.Cause(ctx) == errNotStarted; {
	case err == nil:
		defer release()
	case late && (errors.Is(err, errNotStarted) || errors.Is(err, ctx.Err())):
		return moved(v1.ReasonNoRoom, fmt.Sprintf("node %s had no room within %v", n.Name, n.Timing.startTimeout())), nil
	case ctx.Err() != nil && !late:
		return stopped(ctx, nil), nil
	default:
		return moved(v1.ReasonNoRoom, err.Error()), nil
	}
	// The server is asked whether it still wants the attempt while the input is read.
	asking, stopAsking := context.WithCancel(ctx)
	defer stopAsking()
	confirmed := make(chan error, 1)
	go func() { confirmed <- a.confirm(asking) }()
	before, err := n.records().awaitPriorResults(ctx, req, a.members)
	if err != nil {
		return stopped(ctx, nil), nil
	}
	if len(req.GetBatch()) == 0 {
		for _, earlier := range before {
			return earlier.cut(int(req.GetInlineLimit())), nil
		}
	}
	s, err := n.inputReader().awaitInputs(ctx, req)
	switch {
	case err != nil && ctx.Err() != nil:
		return stopped(ctx, nil), nil
	case err != nil:
		return nil, err
	case <-confirmed != nil || !n.attempts.start(a):
		return stopped(ctx, nil), nil
	}
	if !a.isRemote() { // a node that is lost before the start leaves nothing that another node could not begin itself
		a.claimFile.start()
	}
	if len(req.GetBatch()) > 0 {
		return n.runBatch(ctx, a, exec, s, before)
	}
	return n.run(ctx, a, exec, s)
}

// run executes an attempt of a single task or instance that has its place.
func (n *Node) run(ctx context.Context, a *attempt, exec executor.Executor, s *inputs) (*v1.ExecuteResponse, error) {
	req, m := a.req, &a.members[0]
	w := &work{node: n, attempt: a, inputs: s, gpus: grantedGPUs(a.req, n.HasGPUs), run: exec.Run}
	defer w.close()
	var err error
	if w.secrets, err = n.secretReader().awaitSecrets(ctx, a.req, &a.members[0]); err != nil {
		return stopped(ctx, nil), nil
	}
	res, err := w.prepare(ctx, m)
	switch {
	case err != nil && ctx.Err() != nil:
		return stopped(ctx, nil), nil
	case err != nil || res != nil:
		return res, err
	}
	if err := w.openLog(ctx, m); err != nil {
		return stopped(ctx, nil), nil
	}
	w.writeNotices()
	if n.survivor(req.GetType()) != nil {
		if err := a.writeRecoveryFile(w.id(m), w.spec, w.ws); err != nil {
			return nil, err
		}
		defer a.removeRecoveryFile()
	}
	return w.finish(ctx, m)
}

// logOptions returns the options of an attempt's log. Its size is bounded by the node's limit, or by the task's if that
// is smaller, and its secrets are masked.
func (w *work) logOptions() logs.Options {
	most := cmp.Or(w.node.MaxOutput, logs.DefaultMaxBytes)
	if asked := int64(w.attempt.req.GetResources().GetMaxOutputMb()) << 20; asked > 0 {
		most = min(most, asked)
	}
	return logs.Options{MaxBytes: most, Masks: w.secrets.masks}
}

// writeNotices writes the notices about an attempt's inputs and secrets to its log.
func (w *work) writeNotices() {
	for _, text := range slices.Concat(w.inputs.notices, w.secrets.notices) {
		w.log.Notice(text)
	}
}

// finish runs the only member of an attempt to its end, whether the program starts now or is already running. It returns
// the answer of the attempt.
func (w *work) finish(ctx context.Context, m *member) (*v1.ExecuteResponse, error) {
	n, a := w.node, w.attempt
	w.checkpointer = w.startCheckpointer(ctx, nil)
	res, err := w.do(ctx, m)
	w.checkpointer.stop()

	// The following must happen even if the attempt was cancelled.
	cleanup, done := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer done()
	w.closeOrSuspendLog(cleanup, res)
	if err != nil || res.GetState() == v1.AttemptMoved {
		return res, err
	}
	a.stamp(res)
	answering, answered := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
	defer answered()
	res, err = n.report(answering, a, res)
	if err == nil && w.recorded != nil {
		w.recorded()
	}
	return res, err
}

// report returns the answer of an attempt that has run. If an earlier unreported attempt has completed meanwhile, it
// returns that result instead.
func (n *Node) report(ctx context.Context, a *attempt, res *v1.ExecuteResponse) (*v1.ExecuteResponse, error) {
	m := &a.members[0]
	defer a.announce(phrase.StoreWait)()
	before, err := n.records().priorResults(ctx, a.req, a.members)
	if err != nil {
		n.Logger.Warn("an earlier result could not be looked for", "run", a.req.GetRunId(), "task", m.name, "error", err)
	}
	for _, earlier := range before {
		return earlier.cut(int(a.req.GetInlineLimit())), nil
	}
	if a.lease.Over() && !a.isRemote() {
		// This process stalled after the end, so the task may be running elsewhere. The next dispatch finds the record.
		if res.GetState() == v1.TaskCompleted {
			ctx, cancel := context.WithTimeout(ctx, recordTimeout)
			defer cancel()
			if _, err := n.records().keepResult(ctx, a.req, m, res); err != nil {
				n.Logger.Warn("a result was not recorded", "run", a.req.GetRunId(), "task", m.name, "error", err)
			}
		}
		over := moved(v1.ReasonLeaseLost, errLeaseLost.Error())
		over.AgentEvents = res.GetAgentEvents()
		return over, nil
	}
	return n.records().keepResult(ctx, a.req, m, res)
}
