package orchestrator

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/activities/metrics"
	"switchyard/activities/results"
	"switchyard/activities/signing"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
	"switchyard/workflows/notification"
)

const (
	// maxReopenedBytes is the largest state of an ended run that Reopen returns inline. As JSON it is about twice as
	// large. Larger states go through the store.
	maxReopenedBytes = definition.MaxAnswerBytes / 2
	// carryPartBytes is the size of a stored part of a RunState. Parts are read back in base64.
	carryPartBytes = definition.MaxAnswerBytes * 3 / 4
)

// Control has the local activities of the control process that need the store or histories. It is safe for concurrent use
// and must not be copied.
type Control struct {
	Client    client.Client
	Store     *store.Store
	Evaluator *condition.Evaluator
	Placement *Placement
	// Signer verifies decisions.
	Signer *signing.Signer
	// Notify holds the entries of the fleet: whom to tell about all runs that no other run has started.
	Notify []*v1.Notification
	// Metrics counts the runs and tasks that have ended, or is nil.
	Metrics *metrics.Metrics
	Logger  *slog.Logger

	lists results.ListCache
}

// SaveStatus stores the final status of a run and its remaining events, and removes the run from the placement queue. It returns the
// entries of the fleet for the end of the run, or nil if there are none.
func (c *Control) SaveStatus(ctx context.Context, status *historyv1.StatusResponse, events *historyv1.SaveEventsRequest) (*historyv1.FleetNotify, error) {
	run := status.GetRun()
	c.Placement.Forget(run.GetId())
	if err := c.SaveEvents(ctx, events); err != nil {
		return nil, err
	}
	if err := c.Store.PutMessage(ctx, storekey.Status(names.Home(run.GetId(), status.GetChain()), run.GetGeneration()), status); err != nil {
		return nil, err
	}
	c.count(run)
	entries := notification.Entries(c.Notify, v1.NotifyEvent(run.GetState()))
	if len(entries) == 0 {
		return nil, nil
	}
	return &historyv1.FleetNotify{Entries: entries}, nil
}

// FleetNotify returns the entries of the fleet.
func (c *Control) FleetNotify(context.Context) (*historyv1.FleetNotify, error) {
	return &historyv1.FleetNotify{Entries: c.Notify}, nil
}

// count counts an ended run and its tasks in the metrics. A fanned-out task counts as its instances.
func (c *Control) count(run *v1.Run) {
	c.Metrics.RunEnded(run.GetName(), run.GetState())
	for _, task := range run.GetTasks() {
		if task.Count == nil {
			c.Metrics.TasksEnded(task.GetType(), task.GetState(), 1)
		}
		for state, n := range task.GetCounts() {
			c.Metrics.TasksEnded(task.GetType(), state, int(n))
		}
	}
}

// ProbeStore returns nil if the store can write and read values of a run.
func (c *Control) ProbeStore(ctx context.Context, home string) error {
	return c.Store.Probe(ctx, home)
}

// SaveEvents stores one part of a run's events.
func (c *Control) SaveEvents(ctx context.Context, req *historyv1.SaveEventsRequest) error {
	if len(req.GetEvents()) == 0 {
		return nil
	}
	key := storekey.Events(names.Home(req.GetRunId(), req.GetChain()), req.GetGeneration(), req.GetSlice())
	return c.Store.PutMessage(ctx, key, &historyv1.EventSlice{Events: req.GetEvents()})
}

// SaveState stores the tasks and the context of an execution's final state in parts. It returns the state with the keys
// of the parts in their place. The same state gives the same parts, and no other execution uses their keys. So it is
// harmless if a suspended process continues at any time.
func (c *Control) SaveState(ctx context.Context, home string, generation int32, execution string, runState *historyv1.RunState) (*historyv1.RunState, error) {
	kept := &historyv1.RunState{}
	runState.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if name := field.Name(); name != "tasks" && name != "context" {
			kept.ProtoReflect().Set(field, value)
		}
		return true
	})
	part, size := &historyv1.RunState{Context: runState.GetContext(), Tasks: map[string]*historyv1.TaskState{}}, 0
	flush := func() error {
		key := storekey.RunState(home, generation, execution, int32(len(kept.GetStored())))
		kept.Stored = append(kept.Stored, key)
		err := c.Store.PutMessage(ctx, key, part)
		part, size = &historyv1.RunState{Tasks: map[string]*historyv1.TaskState{}}, 0
		return err
	}
	if err := flush(); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(runState.GetTasks())) {
		task := runState.GetTasks()[name]
		part.Tasks[name] = task
		if size += proto.Size(task) + len(name); size >= carryPartBytes {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	return kept, flush()
}

// LoadState returns a part that SaveState has stored, packed: all parts go into one workflow task, which could not hold
// the state of 10,000 tasks as JSON.
func (c *Control) LoadState(ctx context.Context, req *historyv1.LoadStateRequest) (*historyv1.RunState, error) {
	var part historyv1.RunState
	if err := loadOfRun(ctx, c.Store, req.GetKey(), &part); err != nil {
		return nil, err
	}
	packed, err := definition.PackMessage(&part)
	if err != nil {
		return nil, err
	}
	return &historyv1.RunState{Packed: packed}, nil
}
