package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/notification"
	"switchyard/workflows/options"
)

const (
	// outboxInterval is the time between two looks at an outbox to which this process has added nothing.
	outboxInterval = 10 * time.Second
	// outboxRest is how many times as long as a start the pause after it is, and longestRest bounds this pause. A server that is busy
	// with runs takes long to start a workflow, and gets few.
	outboxRest  = 20
	longestRest = 2 * time.Second
)

// outbox starts the workflows that tell people about events. The events are in the store until then, so that a run need not start a
// workflow, and none is forgotten if the leader changes. Tell is safe for concurrent use.
type outbox struct {
	client starter
	store  *store.Store
	added  chan struct{} // holds a value if an event was added since the last look
	log    *slog.Logger
}

// starter is the part of a client.Client that starts workflows.
type starter interface {
	ExecuteWorkflow(ctx context.Context, o client.StartWorkflowOptions, workflow any, args ...any) (client.WorkflowRun, error)
}

func newOutbox(c starter, s *store.Store, log *slog.Logger) *outbox {
	return &outbox{client: c, store: s, added: make(chan struct{}, 1), log: log}
}

// Tell adds an event. One that was told before is not told again.
func (o *outbox) Tell(ctx context.Context, in *historyv1.NotifyInput) error {
	if err := o.store.PutMessage(ctx, storekey.Outbox(in.GetAt().AsTime(), notification.WorkflowID(in)), in); err != nil {
		return err
	}
	select {
	case o.added <- struct{}{}:
	default: // the next look finds the event, too
	}
	return nil
}

// run empties the outbox until ctx ends.
func (o *outbox) run(ctx context.Context) {
	look := time.NewTicker(outboxInterval)
	defer look.Stop()
	for {
		if err := o.empty(ctx); err != nil && ctx.Err() == nil {
			o.log.Warn("cannot start to tell people about events; they wait in the outbox", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-o.added:
		case <-look.C:
		}
	}
}

// empty starts the workflow of each event, oldest first, slowly enough for the runs.
func (o *outbox) empty(ctx context.Context) error {
	for key, err := range o.store.Keys(ctx, storekey.OutboxPrefix) {
		if err != nil {
			return err
		}
		began := time.Now()
		if err := o.start(ctx, key); err != nil {
			return err
		}
		if !pause(ctx, min(outboxRest*time.Since(began), longestRest)) {
			return nil
		}
	}
	return nil
}

// start starts the workflow of the event under a key, and removes the event. One that no workflow can be started for is given up.
func (o *outbox) start(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	in := &historyv1.NotifyInput{}
	err := o.store.GetMessage(ctx, key, in)
	if err == nil {
		err = o.execute(ctx, in)
	}
	_, isRefused := errors.AsType[*serviceerror.InvalidArgument](err)
	switch {
	case err == nil:
	case errors.Is(err, store.ErrNotFound): // another leader has started it
		return nil
	case isRefused, errors.Is(err, store.ErrUnreadable), in.GetAt() != nil && time.Since(in.GetAt().AsTime()) > notification.Patience:
		o.log.Error("people are not told about an event", "event", in.GetEvent(), "of", notification.About(in), "error", err)
	default:
		return err
	}
	return o.store.Delete(ctx, key)
}

// execute starts the workflow of an event, unless it has been started before.
func (o *outbox) execute(ctx context.Context, in *historyv1.NotifyInput) error {
	_, err := o.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: notification.WorkflowID(in), TaskQueue: names.ControlQueue, WorkflowTaskTimeout: leaderTaskTimeout,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE, WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary: fmt.Sprintf("%s of %s", in.GetEvent(), notification.About(in)), Priority: options.NotifyPriority(),
	}, names.NotifyWorkflow, in)
	if _, told := err.(*serviceerror.WorkflowExecutionAlreadyStarted); told {
		return nil
	}
	return err
}
