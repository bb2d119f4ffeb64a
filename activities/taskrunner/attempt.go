package taskrunner

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/executor"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/phrase"
)

// cleanupTimeout bounds the work after the task's process has ended.
const cleanupTimeout = 30 * time.Second

// attempt is one dispatch of a task, from the moment that the node accepts it until its answer. One call of Execute
// brings it; other calls may reattach it (see detach.go).
//
//	waiting ──start──▶ starting ──spawned──▶ running ──▶ answering
//
// A drain hands a waiting attempt back at once. From start on, the attempt may finish until the drain's deadline. An
// attempt that has no process within the start time-out is handed back, too.
//
// Each component has its own lock, and the attempt has none: its fields are set before the attempt begins.
type attempt struct {
	node     *Node
	req      *historyv1.ExecuteRequest
	members  []member // of req
	key      attemptKey
	delivery delivery // of the activity that brought the attempt
	// takenUpAt is when the node accepted the attempt.
	takenUpAt *timestamppb.Timestamp
	// run executes the attempt and returns its answer.
	run func(context.Context) (*historyv1.ExecuteResponse, error)
	// stop ends the attempt; the first cause counts. ending returns why the attempt is to end, or nil if it is not.
	stop   context.CancelCauseFunc
	ending func() error
	// started, and unkept, which is why the attempt cannot be left to the next worker although it has a keeper, are guarded by the
	// mutex of the node's attempts.
	started bool
	unkept  error

	progress   *progress
	beats      *heartbeats
	attendance *attendance
	lasting    lastingState
	steering   steering
	sessions   sessionCount
	// recoveryFile lets a later worker continue the attempt, and claimFile lets it answer for the attempt. claimFile may be
	// nil.
	recoveryFile *recoveryFile
	claimFile    *claimFile
	// note writes the recovery file of an attempt that runs. It is set before the program starts.
	note func() error
}

// accept creates and begins an attempt. The caller must call its end. The returned context ends when the attempt must.
func (n *Node) accept(ctx context.Context, d delivery, req *historyv1.ExecuteRequest) (context.Context, *attempt) {
	a := n.newAttempt(d, req)
	a.claimFile = n.writeClaim(a, d)
	return n.begin(ctx, a, d.stopping), a
}

// newAttempt returns an attempt that has not begun.
func (n *Node) newAttempt(d delivery, req *historyv1.ExecuteRequest) *attempt {
	file := &recoveryFile{logger: n.Logger, run: req.GetRunId()}
	a := n.newAttemptWith(d, req, file)
	file.task = a.members[0].name
	return a
}

// newAttemptWith returns an attempt with a recovery file that has not begun.
func (n *Node) newAttemptWith(d delivery, req *historyv1.ExecuteRequest, file *recoveryFile) *attempt {
	members := membersOf(req)
	a := &attempt{
		node: n, req: req, members: members, key: keyOf(req, members), delivery: d, takenUpAt: timestamppb.Now(), recoveryFile: file,
		progress: newProgress(&historyv1.ExecuteProgress{Claim: req.GetClaim(), Checkpoint: members[0].checkpoint}),
	}
	a.attendance = newAttendance(d.activityRef, file, a.progress.beatNow, a.isLasting)
	a.beats = newHeartbeats(n, termsOf(d.heartbeat, n.Timing.BeatInterval), a.progress, a.attendance, a.acknowledge)
	a.beats.growth.limit = req.GetMaxLease().AsDuration()
	a.run = func(ctx context.Context) (*historyv1.ExecuteResponse, error) { return n.execute(ctx, a) }
	return a
}

// begin starts the heartbeats of the attempt. The returned context ends when the attempt must.
func (n *Node) begin(ctx context.Context, a *attempt, stopping <-chan struct{}) context.Context {
	ctx, a.stop = context.WithCancelCause(ctx)
	a.ending = func() error { return context.Cause(ctx) }
	n.attempts.enter(a)
	n.attempts.claims.takeUp()
	a.beats.begin(ctx, a.stop, stopping)
	if a.lasts() {
		go a.superviseUnattended(context.WithoutCancel(ctx))
	}
	return ctx
}

// runToEnd runs an attempt until it has its answer, which awaitEnd returns. The answer of a detached attempt is kept
// until it is too late for another activity to fetch it.
func (a *attempt) runToEnd(ctx context.Context) {
	res, err := a.guarded(ctx)
	if res != nil && res.Node == "" {
		a.stamp(res)
	}
	if res.GetState() == v1.AttemptMoved && res.GetReason() == v1.ReasonLeaseLost && !a.progress.isWaiting() {
		a.logLostLease()
	}
	if err != errLetGo {
		a.node.attempts.endHere(a)
		a.node.attemptMetrics().countAttempt(a.req.GetType(), res)
		a.node.attempts.claims.end(res)
	}
	a.beats.silence()
	a.claimFile.remove()
	detached, until := a.attendance.end(res, err)
	a.stop(nil)
	switch {
	case err == errLetGo && detached:
		a.node.attempts.leave(a)
	case detached && a.isLasting():
		// The answer stays until the run has fetched it or no longer waits for it.
	case detached:
		time.AfterFunc(max(until.Sub(executor.Now()), 0), func() { a.node.attempts.leave(a) })
	}
}

// guarded executes an attempt. A panic ends only that attempt.
func (a *attempt) guarded(ctx context.Context) (res *historyv1.ExecuteResponse, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.node.Logger.Error("an attempt has failed by a fault of this program", "run", a.req.GetRunId(), "task", a.members[0].name,
				"panic", p, "stack", string(debug.Stack()))
			res, err = nil, fmt.Errorf("a fault of the node: %v", p)
		}
	}()
	return a.run(ctx)
}

// refuse returns the answer that hands an attempt back because this worker cannot run it now, or nil if it can.
func (n *Node) refuse(req *historyv1.ExecuteRequest) *historyv1.ExecuteResponse {
	switch want := req.GetIncarnation(); {
	case want != "" && n.Incarnation != "" && want != n.Incarnation:
		return moved(v1.ReasonIncarnation, fmt.Sprintf("node %s was started again since", n.Name))
	case n.Executors[req.GetType()] == nil:
		return moved(v1.ReasonNoExecutor, fmt.Sprintf("node %s runs no tasks of type %s", n.Name, req.GetType()))
	case n.recovery.Load().isSearching(req.GetType()):
		return moved(v1.ReasonNoExecutor, fmt.Sprintf("node %s is looking for what its earlier worker has left", n.Name))
	}
	return nil
}

// execute waits for everything that an attempt needs, and then runs it. An attempt that cannot have what it needs is
// handed back.
func (n *Node) execute(ctx context.Context, a *attempt) (*historyv1.ExecuteResponse, error) {
	req := a.req
	if refusal := n.refuse(req); refusal != nil {
		return refusal, nil
	}
	exec := n.Executors[req.GetType()]
	if ctx.Err() != nil {
		return stopped(ctx, nil), nil
	}
	release, err := n.acquire(ctx, a)
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
	go func() { confirmed <- a.beats.confirm(asking) }()
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
	if n.survivor(req.GetType()) != nil || req.GetType() == v1.TypeSubagent { // agents run commands in containers
		n.State.guard(n.Logger)
	}
	if len(req.GetBatch()) > 0 {
		return n.runBatch(ctx, a, exec, s, before)
	}
	return n.run(ctx, a, exec, s)
}

// run executes an attempt of a single task or instance that has its place.
func (n *Node) run(ctx context.Context, a *attempt, exec executor.Executor, s *inputs) (*historyv1.ExecuteResponse, error) {
	req, m := a.req, &a.members[0]
	w := &work{node: n, attempt: a, inputs: s, gpus: n.grantedGPUs(req), run: exec.Run}
	defer w.close()
	var err error
	if w.secrets, err = n.secretReader().awaitSecrets(ctx, req, m); err != nil {
		return stopped(ctx, nil), nil
	}
	res, err := w.prepare(ctx, m)
	switch {
	case err != nil && ctx.Err() != nil:
		return stopped(ctx, nil), nil
	case err != nil || res != nil:
		return res, err
	}
	w.log = w.newLog()
	if err := w.log.open(ctx, m); err != nil {
		return stopped(ctx, nil), nil
	}
	w.log.writeNotices(slices.Concat(s.notices, w.secrets.notices)...)
	a.note = func() error { return a.writeRecoveryFile(w.id(m), w.spec, w.ws) }
	if n.survivor(req.GetType()) != nil {
		if err := a.note(); err != nil {
			return nil, err
		}
	}
	defer a.recoveryFile.remove()
	return w.finish(ctx, m)
}

// finish runs the only member of an attempt to its end, whether the program starts now or is already running. It returns
// the answer of the attempt.
func (w *work) finish(ctx context.Context, m *member) (*historyv1.ExecuteResponse, error) {
	n, a := w.node, w.attempt
	w.checkpointer = w.startCheckpointer(ctx, nil)
	res, err := w.do(ctx, m)
	w.checkpointer.stop()

	// The following must happen even if the attempt was cancelled.
	cleanup, done := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer done()
	if res.GetState() == v1.AttemptMoved && !a.isRemote() && !a.progress.isWaiting() {
		w.log.Notice("ended by node " + n.Name + ": " + res.GetError())
	}
	w.log.closeOrSuspend(cleanup, a.recoveryFile.hasLeft(), res)
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
func (n *Node) report(ctx context.Context, a *attempt, res *historyv1.ExecuteResponse) (*historyv1.ExecuteResponse, error) {
	m := &a.members[0]
	defer a.progress.announce(phrase.StoreWait)()
	before, err := n.records().priorResults(ctx, a.req, a.members)
	if err != nil {
		n.Logger.Warn("an earlier result could not be looked for", "run", a.req.GetRunId(), "task", m.name, "error", err)
	}
	for _, earlier := range before {
		return earlier.cut(int(a.req.GetInlineLimit())), nil
	}
	if a.beats.lease.Over() && !a.isRemote() {
		// This process stalled after the end, so the task may be running elsewhere. The next dispatch finds the record.
		if res.GetState() == v1.TaskCompleted {
			ctx, cancel := context.WithTimeout(ctx, n.Timing.recordTimeout())
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

// acknowledge handles the server's reply to a heartbeat sent at an instant. running is set if the heartbeat said that the
// process has started, and the server still wants the attempt.
func (a *attempt) acknowledge(sent executor.Instant, running bool) {
	a.recoveryFile.recordHeartbeat(sent)
	if running && a.lasts() {
		a.beginLasting()
	}
}

// spawned records that the task's process, or the first of a batch, has started.
func (a *attempt) spawned(at time.Time) {
	a.beats.workFrom(at)
	a.progress.advance(func(p *historyv1.ExecuteProgress) { p.Spawned, p.StartedAt = true, timestamppb.New(at) })
	close(a.beats.spawns)
	a.claimFile.run(at)
	workload := a.progress.Load().GetWorkload()
	a.recoveryFile.update(func(k *recoveryState) { k.StartedAt, k.located = at, workload })
	a.node.attempts.settle()
}

// located records what runs the attempt, or the member of a batch that runs now.
func (a *attempt) located(w *v1.Workload) {
	a.progress.advance(func(p *historyv1.ExecuteProgress) { p.Workload = w })
	if a.progress.isWaiting() || len(a.req.GetBatch()) > 0 {
		return // the next heartbeat reports it
	}
	a.progress.beatNow()
	a.recoveryFile.update(func(k *recoveryState) { k.located = w })
}

// stamp adds the node's name and its times to an answer.
func (a *attempt) stamp(res *historyv1.ExecuteResponse) {
	res.Node, res.AssignedAt = a.node.Name, a.takenUpAt
	res.StartedAt, res.CompletedAt = a.progress.Load().GetStartedAt(), timestamppb.Now()
}

// end removes an attempt that has nothing running any more.
func (a *attempt) end() {
	a.beats.silence()
	a.node.attempts.leave(a)
	a.stop(nil)
}
