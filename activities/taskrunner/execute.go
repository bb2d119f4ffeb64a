package taskrunner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"switchyard/activities/executor"
	"switchyard/activities/executor/workspace"
	"switchyard/activities/heartbeat"
	"switchyard/activities/logs"
	"switchyard/activities/metrics"
	"switchyard/activities/results"
	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/phrase"
)

const (
	// defaultStartTimeout is how long an accepted attempt may wait, for room
	// or for anything else, before it is handed back.
	defaultStartTimeout = 30 * time.Second
	// prepareSilence is how long an attempt may take from one sign that what it needs is
	// being brought, such as an image, to the next, or to its start.
	prepareSilence = 6 * time.Minute
	// stopGrace is the time between SIGTERM and SIGKILL.
	stopGrace = 10 * time.Second
	// cleanupTimeout bounds what is done after the task's process has ended.
	cleanupTimeout = 30 * time.Second
)

// Room hands out places on a node. Acquire waits until there is one with all that
// the attempt needs, GPUs and NUMA node included, and fails when ctx ends or when
// there can never be one. release gives it back.
type Room interface {
	Acquire(ctx context.Context, req *v1.ExecuteRequest) (release func(), err error)
	// Restore takes the place of an attempt that has run since before this process, also
	// where there is no room for it.
	Restore(req *v1.ExecuteRequest) (release func(), err error)
}

// Node has the activities of one machine. It is safe for concurrent use.
type Node struct {
	Name string
	// Incarnation is the identity of this start of the worker: attempts that were
	// placed on another one are handed back. Empty: that is not looked at.
	Incarnation string
	Client      client.Client
	Store       *store.Store
	Room        Room
	Executors   map[string]executor.Executor // by task type
	// BaseDir is where relative working directories start.
	BaseDir string
	// Workspaces is where attempts get their private directories.
	Workspaces *workspace.Root
	// StateDir is where what a later worker of the node needs lies; no other process uses
	// it. Empty: no attempt outlives this worker.
	StateDir string
	// LastingTempDir is where attempts that outlive this worker have their temporary directories; it belongs to the node
	// alone. Empty: in their private directories.
	LastingTempDir string
	// Guard is called before the first attempt starts that outlives this worker, so that
	// something calls EndOverdue from then on; nil: nothing does.
	Guard func()
	// Fleet distinguishes nodes of one name that are of different fleets.
	Fleet string
	// SharedDir is given to tasks as SWITCHYARD_SHARED_DIR; empty: none.
	SharedDir string
	// MaxOutput is how much output of an attempt its log keeps, in bytes; 0: the default of package logs.
	MaxOutput int64
	// Secrets has the values of the secrets of tasks; nil: tasks that ask for any fail.
	Secrets SecretSource
	// HasGPUs says that the machine has GPUs: tasks that were given none then see none.
	// It may change while the node runs; nil: there are none.
	HasGPUs func() bool
	// BeatInterval is the longest time between the heartbeats of an attempt; there
	// are at least five in its heartbeat time-out. 0: as many as that.
	BeatInterval time.Duration
	// EndGrace ends the time between SIGTERM and SIGKILL early when it is closed, or is nil.
	EndGrace <-chan struct{}
	// StartTimeout is how long an attempt may wait for its start; 0: 30 s.
	StartTimeout time.Duration
	// Wanted reports whether the run of an attempt waits for this dispatch of it, which the node asks for lasting attempts that no
	// activity waits for; nil: all are wanted.
	Wanted func(context.Context, executor.Identity) (bool, error)
	// WantedInterval is about how long such an attempt runs between two questions; 0: 1 min.
	WantedInterval time.Duration
	// Metrics counts attempts; nil: they are not counted.
	Metrics *metrics.Metrics
	Logger  *slog.Logger

	attempts attempts
	claims   claimCounts
	lists    results.ListCache
	// expressions is made by evaluator.
	expressions     *condition.Evaluator
	makeExpressions sync.Once
	// lastingRoot is made by lasting.
	lastingRoot *workspace.Root
	makeLasting sync.Once
	guarded     sync.Once
	recovery    atomic.Pointer[recovery] // nil: there is none
	// recording are the calls of Recorded under way.
	recording sync.WaitGroup
}

func (n *Node) evaluator() *condition.Evaluator {
	n.makeExpressions.Do(func() { n.expressions = condition.NewEvaluator() })
	return n.expressions
}

func (n *Node) startTimeout() time.Duration { return cmp.Or(n.StartTimeout, defaultStartTimeout) }

// Execute runs one attempt of a task and returns how it ended, when nothing of
// it is left. Cancelling the activity stops the attempt. An attempt whose task was
// completed by an earlier one, which was never reported, returns what that one left.
// A batch of instances is run as one attempt; see runBatch. It returns before the end
// when the attempt was detached, and another call, that reattaches it, has the answer.
func (n *Node) Execute(ctx context.Context, req *v1.ExecuteRequest) (*v1.ExecuteResponse, error) {
	followReset(req, activity.GetInfo(ctx).WorkflowExecution.RunID)
	return activityEnd(n.executeFrom(ctx, deliveryOf(ctx), req))
}

// followReset has an attempt work for the execution that its activity is of. A reset leaves an activity that was
// scheduled and not started to the new execution, with the request of the terminated one.
func followReset(req *v1.ExecuteRequest, execution string) {
	if req.GetExecution() != "" && req.GetExecution() != execution {
		req.Chain, req.Execution = execution, execution // the first execution after a reset names the chain
	}
}

func (n *Node) executeFrom(ctx context.Context, d delivery, req *v1.ExecuteRequest) (*v1.ExecuteResponse, error) {
	if req.GetAdopt() {
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
	if n.recovering(req.GetType()) {
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
		return moved(v1.ReasonNoRoom, fmt.Sprintf("node %s had no room within %v", n.Name, n.startTimeout())), nil
	case ctx.Err() != nil && !late:
		return stopped(ctx, nil), nil
	default:
		return moved(v1.ReasonNoRoom, err.Error()), nil
	}
	// Whether the server still wants the attempt is asked while its input is read.
	asking, stopAsking := context.WithCancel(ctx)
	defer stopAsking()
	confirmed := make(chan error, 1)
	go func() { confirmed <- a.confirm(asking) }()
	before, err := n.awaitPriorResults(ctx, req, a.members)
	if err != nil {
		return stopped(ctx, nil), nil
	}
	if len(req.GetBatch()) == 0 {
		for _, earlier := range before {
			return earlier.cut(int(req.GetInlineLimit())), nil
		}
	}
	s, err := n.awaitInputs(ctx, req)
	switch {
	case err != nil && ctx.Err() != nil:
		return stopped(ctx, nil), nil
	case err != nil:
		return nil, err
	case <-confirmed != nil || !n.attempts.start(a):
		return stopped(ctx, nil), nil
	}
	if !a.isRemote() { // a node that is lost before the start leaves nothing that another one could not begin
		a.claimFile.start()
	}
	if len(req.GetBatch()) > 0 {
		return n.runBatch(ctx, a, exec, s, before)
	}
	return n.run(ctx, a, exec, s)
}

// run runs an attempt that has its place, of a task or of one instance.
func (n *Node) run(ctx context.Context, a *attempt, exec executor.Executor, s *inputs) (*v1.ExecuteResponse, error) {
	req, m := a.req, &a.members[0]
	w := &work{node: n, attempt: a, inputs: s, gpus: n.gpus(a), run: exec.Run}
	defer w.close()
	var err error
	if w.secrets, err = n.awaitSecrets(ctx, a); err != nil {
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

// logOptions bounds the log of an attempt by what the node keeps, or by less if the task asks for that, and has its
// secrets masked.
func (w *work) logOptions() logs.Options {
	most := cmp.Or(w.node.MaxOutput, logs.DefaultMaxBytes)
	if asked := int64(w.attempt.req.GetResources().GetMaxOutputMb()) << 20; asked > 0 {
		most = min(most, asked)
	}
	return logs.Options{MaxBytes: most, Masks: w.secrets.masks}
}

// writeNotices has the log say what is to be known of the attempt before it starts.
func (w *work) writeNotices() {
	for _, text := range slices.Concat(w.inputs.notices, w.secrets.notices) {
		w.log.Notice(text)
	}
}

// finish brings the one member of an attempt to its end, be it that it starts now or
// that it has been running, and returns what is to be said of it.
func (w *work) finish(ctx context.Context, m *member) (*v1.ExecuteResponse, error) {
	n, a := w.node, w.attempt
	w.checkpointer = w.startCheckpointer(ctx, nil)
	res, err := w.do(ctx, m)
	w.checkpointer.stop()

	// What follows must happen although the attempt was cancelled.
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

// report returns what is to be said of an attempt that has run: what it left,
// unless an earlier one that was never reported has completed meanwhile.
func (n *Node) report(ctx context.Context, a *attempt, res *v1.ExecuteResponse) (*v1.ExecuteResponse, error) {
	m := &a.members[0]
	defer a.announce(phrase.StoreWait)()
	before, err := n.priorResults(ctx, a.req, a.members)
	if err != nil {
		n.Logger.Warn("an earlier result could not be looked for", "run", a.req.GetRunId(), "task", m.name, "error", err)
	}
	for _, earlier := range before {
		return earlier.cut(int(a.req.GetInlineLimit())), nil
	}
	if a.lease.Over() && !a.isRemote() {
		// This process was held up since the end; the task may be running elsewhere. The next dispatch finds the record.
		if res.GetState() == v1.TaskCompleted {
			ctx, cancel := context.WithTimeout(ctx, recordTimeout)
			defer cancel()
			if _, err := n.keepResult(ctx, a.req, m, res); err != nil {
				n.Logger.Warn("a result was not recorded", "run", a.req.GetRunId(), "task", m.name, "error", err)
			}
		}
		over := moved(v1.ReasonLeaseLost, errLeaseLost.Error())
		over.AgentEvents = res.GetAgentEvents()
		return over, nil
	}
	return n.keepResult(ctx, a.req, m, res)
}
