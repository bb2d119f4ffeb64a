package workers

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"switchyard/activities"
	"switchyard/activities/placement"
	"switchyard/activities/store"
	"switchyard/workflows"
	"switchyard/workflows/condition"
	"switchyard/workflows/names"
)

// ControlConfig is what a control worker needs. All of it is required.
type ControlConfig struct {
	Client *Connection
	Store  *store.Store
	Logger *slog.Logger

	// Smaller than their defaults in tests.
	limits        workflows.Limits
	sweepInterval time.Duration
}

func (c ControlConfig) validate() error {
	switch {
	case c.Client == nil:
		return fmt.Errorf("control worker: Client is missing")
	case c.Store == nil:
		return fmt.Errorf("control worker: Store is missing")
	case c.Logger == nil:
		return fmt.Errorf("control worker: Logger is missing")
	}
	return nil
}

// Control is a running control worker: it carries the workflows and holds the
// placement queue.
type Control struct {
	worker worker.Worker
	fleet  *fleet
	cancel context.CancelFunc
	loops  sync.WaitGroup
	stop   sync.Once
}

// deadlockTimeout is how long workflow code may run without yielding. The SDK's
// second is short on a machine whose cores the tasks of a node keep busy.
const deadlockTimeout = 10 * time.Second

// StartControl starts a control worker. It does not block; Stop ends it.
func StartControl(_ context.Context, cfg ControlConfig) (*Control, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	queue := placement.New(placement.Options{Epoch: uuid.NewString()})
	place := activities.NewPlacement(cfg.Client, queue, activities.PlacementOptions{SweepInterval: cfg.sweepInterval, Logger: cfg.Logger})
	control := &activities.Control{Store: cfg.Store, Evaluator: condition.NewEvaluator(), Placement: place, Logger: cfg.Logger}

	w := worker.New(cfg.Client.Client, names.ControlQueue, worker.Options{
		// An AwaitPlacement of each waiting run occupies one.
		MaxConcurrentActivityExecutionSize: 10_000,
		DeadlockDetectionTimeout:           deadlockTimeout,
		WorkerStopTimeout:                  time.Second,
	})
	w.RegisterWorkflowWithOptions(workflows.Runner{Limits: cfg.limits}.Run, workflow.RegisterOptions{Name: names.RunWorkflow})
	w.RegisterWorkflowWithOptions(workflows.Node, workflow.RegisterOptions{Name: names.NodeWorkflow})
	for name, f := range map[string]any{
		names.PlaceActivity:          place.Place,
		names.AwaitPlacementActivity: place.AwaitPlacement,
		names.EvaluateActivity:       control.Evaluate,
		names.SaveStatusActivity:     control.SaveStatus,
		names.SaveCarryActivity:      control.SaveCarry,
		names.LoadCarryActivity:      control.LoadCarry,
	} {
		w.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Control{worker: w, cancel: cancel, fleet: newFleet(cfg.Client, place, cfg.Logger)}
	if err := w.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("start control worker: %w", err)
	}
	c.loops.Go(func() { place.Run(ctx) })
	c.loops.Go(func() { c.fleet.run(ctx) })
	return c, nil
}

// ExpectNodes has the fleet look for nodes that are about to register, without
// waiting until visibility lists them.
func (c *Control) ExpectNodes(names ...string) { c.fleet.expect(names) }

// Stop ends the worker and returns when it has ended. A second Stop does nothing.
func (c *Control) Stop() {
	c.stop.Do(func() {
		c.worker.Stop()
		c.cancel()
		c.loops.Wait()
	})
}
