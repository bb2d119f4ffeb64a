package workers

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"switchyard/activities/election"
	"switchyard/activities/environments"
	"switchyard/activities/grants"
	"switchyard/activities/library"
	"switchyard/activities/orchestrator"
	"switchyard/activities/owners"
	"switchyard/activities/placement"
	"switchyard/activities/schedules"
	"switchyard/activities/signing"
	"switchyard/activities/taskrunner"
	"switchyard/workflows/condition"
	"switchyard/workflows/environment"
	"switchyard/workflows/explain"
	"switchyard/workflows/names"
	"switchyard/workflows/notify"
	"switchyard/workflows/run"
)

const (
	// deadlockTimeout is how long workflow code may run without yielding. The SDK's default of one second is too short
	// on a machine whose cores are busy with tasks.
	deadlockTimeout = 10 * time.Second
	// stickyTimeout is how long a workflow task waits for the process that ran the previous one before any other
	// process gets it.
	stickyTimeout = 2 * time.Second
	// termStopTimeout is how long the calls in progress of a term may take to end.
	termStopTimeout = time.Second
)

// workflowPollers polls a worker's queue and its sticky queue apart. With the SDK's default, all polls may end up at the
// sticky queue, and a new workflow then waits up to a minute for its first task.
var workflowPollers = worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{InitialNumberOfPollers: 2, MaximumNumberOfPollers: 10})

// term is one period of leadership: its queue, the parts that fill it, and the worker that
// carries the runs.
type term struct {
	worker  worker.Worker
	place   *orchestrator.Placement
	fleet   *fleet
	stuck   *stuckRuns
	late    *lateSchedules
	stopped atomic.Bool
	leads   func() bool // reports whether the lease of this process still holds
	unwatch func()      // removes the term from metrics scrapes
	cancel  context.CancelFunc
	loops   sync.WaitGroup
}

// startTerm starts a term. valid reports whether this process still leads.
func startTerm(cfg ControlConfig, epoch string, valid func() bool) (*term, error) {
	t := &term{leads: valid}
	queue := placement.New(placement.Options{Epoch: epoch, Placed: cfg.Metrics.Placed, Settled: cfg.Metrics.Settled, Weights: cfg.Weights, FIFO: cfg.FIFO, FairHalfLife: cfg.FairHalfLife})
	var given *grants.Grants
	if cfg.GrantNodes {
		given = grants.New(cfg.Store)
	}
	t.place = orchestrator.NewPlacement(cfg.Client, queue, orchestrator.PlacementOptions{
		Grants:        given,
		SweepInterval: cfg.sweepInterval,
		Valid:         t.valid,
		Logger:        cfg.Logger,
	})
	t.fleet = newFleet(cfg.Client, t.place, cfg.Logger)
	t.stuck = &stuckRuns{client: cfg.Client, log: cfg.Logger}
	out := newOutbox(cfg.Client, cfg.Store, cfg.Logger)
	stored := library.New(cfg.Client, cfg.Client.Namespace)
	t.late = &lateSchedules{client: cfg.Client, library: stored, schedules: schedules.New(cfg.Client, cfg.Client.Namespace), notify: cfg.Notify, outbox: out, log: cfg.Logger}
	control := &orchestrator.Control{Client: cfg.Client, Store: cfg.Store, Evaluator: condition.NewEvaluator(), Placement: t.place, Metrics: cfg.Metrics, Logger: cfg.Logger, Notify: cfg.Notify, Signer: signing.New(cfg.Store, time.Now)}

	t.worker = worker.New(cfg.Client.Client, names.ControlQueue, worker.Options{
		// Each waiting run occupies one slot with AwaitPlacement, and each run that awaits others one with AwaitRuns.
		MaxConcurrentActivityExecutionSize: 10_000,
		DeadlockDetectionTimeout:           deadlockTimeout,
		StickyScheduleToStartTimeout:       stickyTimeout,
		WorkerStopTimeout:                  termStopTimeout,
		WorkflowTaskPollerBehavior:         workflowPollers,
	})
	t.worker.RegisterWorkflowWithOptions(run.Runner{Limits: cfg.Limits}.Run, workflow.RegisterOptions{Name: names.RunWorkflow})
	t.worker.RegisterWorkflowWithOptions(run.Runner{Limits: cfg.Limits}.Run, workflow.RegisterOptions{Name: names.FanOutWorkflow})
	t.worker.RegisterWorkflowWithOptions(cfg.Locker.Lock, workflow.RegisterOptions{Name: names.LockWorkflow})
	t.worker.RegisterWorkflowWithOptions(environment.Environment, workflow.RegisterOptions{Name: names.EnvironmentWorkflow})
	t.worker.RegisterWorkflowWithOptions(notify.Notify, workflow.RegisterOptions{Name: names.NotifyWorkflow})
	t.worker.RegisterWorkflowWithOptions(explain.Explain, workflow.RegisterOptions{Name: names.ExplainWorkflow})
	lost := &taskrunner.LostAttempts{Client: cfg.Client, Store: cfg.Store, Node: t.fleet.entry, AwayUntil: cfg.server.AwayUntil}
	locks := &orchestrator.Locks{Client: cfg.Client, Watch: lost.Watch}
	children := orchestrator.NewChildren(cfg.Client, stored, cfg.Store, cfg.Defaults)
	kept := orchestrator.Environments{Library: environments.New(cfg.Store)}
	notifier := &orchestrator.Notifier{Client: cfg.Client, Store: cfg.Store, Evaluator: control.Evaluator, Sender: cfg.Sender, ExternalURL: cfg.ExternalURL, Logger: cfg.Logger, Now: time.Now}
	for name, f := range map[string]any{
		names.PlaceActivity:          t.place.Place,
		names.AwaitPlacementActivity: t.place.AwaitPlacement,
		names.ExplainActivity:        t.place.Explain,
		names.EvaluateActivity:       control.Evaluate,
		names.SaveStatusActivity:     control.SaveStatus,
		names.SaveStateActivity:      control.SaveState,
		names.LoadStateActivity:      control.LoadState,
		names.SaveEventsActivity:     control.SaveEvents,
		names.ReopenActivity:         control.Reopen,
		names.SaveSharedActivity:     control.SaveShared,
		names.SaveAncestorsActivity:  control.SaveAncestors,
		names.LoadProgressActivity:   control.LoadProgress,
		names.SilentNodesActivity:    control.SilentNodes,
		names.ProbeStoreActivity:     control.ProbeStore,
		names.VerifyDecisionActivity: control.VerifyDecision,
		names.AwaitAnswerActivity:    lost.AwaitAnswer,
		names.CollectActivity:        control.Collect,
		names.SaveCachedActivity:     control.SaveCached,
		names.AskLocksActivity:       locks.Ask,
		names.HoldersActivity:        locks.Holders,
		names.PrepareActivity:        children.Prepare,
		names.SaveInputActivity:      control.SaveInput,
		names.LoadInputActivity:      control.LoadInput,
		names.LoadWorkflowActivity:   children.LoadWorkflow,
		names.ChildRunEndsActivity:   children.Ends,
		names.AwaitRunsActivity:      children.AwaitRuns,
		names.KeepActivity:           kept.Keep,
		names.DiscardActivity:        kept.Discard,

		names.FleetNotifyActivity:      control.FleetNotify,
		names.TellActivity:             out.Tell,
		names.PlanNotificationActivity: notifier.Plan,
		names.SendNotificationActivity: notifier.Send,
	} {
		t.worker.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	if err := t.worker.Start(); err != nil {
		return nil, fmt.Errorf("start control worker: %w", err)
	}
	t.unwatch = cfg.Metrics.WatchFleet(t.figures)
	var ctx context.Context
	ctx, t.cancel = context.WithCancel(context.Background())
	t.loops.Go(func() { t.place.Run(ctx) })
	t.loops.Go(func() { t.place.KeepOwners(ctx, owners.New(cfg.Store, time.Now)) })
	t.loops.Go(func() {
		t.fleet.identify(ctx, cfg.Store)
		t.fleet.run(ctx)
	})
	t.loops.Go(func() { t.stuck.watch(ctx) })
	t.loops.Go(func() { t.late.watch(ctx) })
	t.loops.Go(func() { out.run(ctx) })
	t.loops.Go(func() {
		(&closedRuns{client: cfg.Client, store: cfg.Store, notify: cfg.Notify, outbox: out, log: cfg.Logger, done: map[string]time.Time{}}).watch(ctx)
	})
	t.loops.Go(func() { newCollector(cfg.Client, cfg.Store, cfg.Retention, cfg.CleanupInterval, cfg.Logger).run(ctx) })
	return t, nil
}

// valid reports whether the term continues and the lease holds. A process that was frozen learns from the lease that another
// one may lead.
func (t *term) valid() bool { return !t.stopped.Load() && t.leads() }

// Benched returns the nodes that get no tasks because their attempts kept failing, with the end of that time.
func (t *term) Benched() map[string]time.Time { return t.place.Benched() }

// Suspicions returns, by node, the number of dispatches that were not picked up or not started.
func (t *term) Suspicions() map[string]int32 { return t.place.Suspicions() }

// Stop ends the term. Calls in progress get no reply.
func (t *term) Stop() {
	t.stopped.Store(true)
	t.unwatch()
	t.worker.Stop()
	t.cancel()
	t.loops.Wait()
}

var _ election.Term = (*term)(nil)
