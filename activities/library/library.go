package library

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/encoding/protojson"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

// What errors of a Library are about, for errors.Is.
var (
	// ErrUnknown: there is no definition of that name.
	ErrUnknown = errors.New("unknown workflow")
	// ErrExists: there is one already.
	ErrExists = errors.New("workflow exists")
	// ErrTooLarge: a schedule does not hold the definition.
	ErrTooLarge = errors.New("definition is too large")
)

const (
	// maxBytes is what a stored definition may take; a schedule holds 2 MB with everything around it.
	maxBytes = 1_600_000
	// taskTimeout is after which time a step of a run that was triggered by hand goes to another process.
	taskTimeout = 6 * time.Second
	// listPage is how many schedules one call lists.
	listPage = 1000
)

// Library is the stored definitions of a namespace of Temporal. It is safe for concurrent use.
type Library struct {
	client client.Client
	now    func() time.Time
}

// New returns the library of the client's namespace.
func New(c client.Client) *Library { return &Library{client: c, now: time.Now} }

// Stored is a stored definition.
type Stored struct {
	// Definition, as it was stored; in a list only its name and description.
	Definition *v1.Definition
	// UpdatedAt is when it was stored; zero when that is not known.
	UpdatedAt time.Time
}

// Put stores a checked definition under its name, with the options of the runs that its schedule starts, or nil for
// the defaults. The error is ErrExists if there is one, and replace is not set.
func (l *Library) Put(ctx context.Context, def *v1.Definition, options *v1.RunOptions, replace bool) (replaced bool, err error) {
	action, err := actionOf(def, options)
	if err != nil {
		return false, err
	}
	notes := note{l.now(), def.GetDescription()}.String()
	schedules := l.client.ScheduleClient()
	for {
		_, err := schedules.Create(ctx, client.ScheduleOptions{
			ID: names.StoredWorkflowID(def.GetName()), Action: action, Paused: true, Note: notes,
		})
		if err == nil {
			return false, nil
		}
		if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) && !is[*serviceerror.AlreadyExists](err) {
			return false, fmt.Errorf("store workflow %s: %w", def.GetName(), err)
		}
		if !replace {
			return false, fmt.Errorf("%w: %s", ErrExists, def.GetName())
		}
		err = schedules.GetHandle(ctx, names.StoredWorkflowID(def.GetName())).Update(ctx, client.ScheduleUpdateOptions{
			DoUpdate: func(old client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
				schedule := old.Description.Schedule
				schedule.Action = action
				// What else there is, such as a time table, stays.
				schedule.State.Note = notes
				return &client.ScheduleUpdate{Schedule: &schedule}, nil
			},
		})
		if !is[*serviceerror.NotFound](err) {
			if err != nil {
				return false, fmt.Errorf("replace workflow %s: %w", def.GetName(), err)
			}
			return true, nil
		}
		// It was deleted meanwhile.
	}
}

// actionOf is what the schedule of a definition starts.
func actionOf(def *v1.Definition, options *v1.RunOptions) (*client.ScheduleWorkflowAction, error) {
	references, err := definition.References(def)
	if err != nil {
		return nil, err
	}
	in := &v1.RunInput{Definition: def, References: references, Options: options}
	if err := definition.Pack(in); err != nil {
		return nil, err
	}
	text, err := protojson.Marshal(in)
	if err != nil {
		return nil, err
	}
	if len(text) > maxBytes {
		return nil, fmt.Errorf("%w: it takes %d bytes, compressed, and may take %d", ErrTooLarge, len(text), maxBytes)
	}
	attributes := visibility.Started(def.GetName(), v1.TriggerSchedule, time.Time{}) // the run adds the time
	return &client.ScheduleWorkflowAction{
		ID: def.GetName(), Workflow: names.RunWorkflow, Args: []any{in}, TaskQueue: names.ControlQueue,
		WorkflowTaskTimeout: taskTimeout, TypedSearchAttributes: attributes.Typed(),
	}, nil
}

// Get returns the definition of a name.
func (l *Library) Get(ctx context.Context, name string) (*Stored, error) {
	described, err := l.client.ScheduleClient().GetHandle(ctx, names.StoredWorkflowID(name)).Describe(ctx)
	if is[*serviceerror.NotFound](err) {
		return nil, unknown(name)
	}
	if err != nil {
		return nil, fmt.Errorf("read workflow %s: %w", name, err)
	}
	action, ok := described.Schedule.Action.(*client.ScheduleWorkflowAction)
	if !ok || len(action.Args) != 1 {
		return nil, fmt.Errorf("read workflow %s: its schedule starts something else", name)
	}
	payload, ok := action.Args[0].(*commonpb.Payload)
	if !ok {
		return nil, fmt.Errorf("read workflow %s: its schedule has an argument of type %T", name, action.Args[0])
	}
	in := &v1.RunInput{}
	if err := converter.GetDefaultDataConverter().FromPayload(payload, in); err != nil {
		return nil, fmt.Errorf("read workflow %s: %w", name, err)
	}
	if in, err = definition.Unpack(in); err != nil {
		return nil, fmt.Errorf("read workflow %s: %w", name, err)
	}
	return &Stored{Definition: in.GetDefinition(), UpdatedAt: parseNote(described.Schedule.State.Note).at}, nil
}

// List returns all stored definitions, by name, without their tasks. What was stored or deleted
// a moment ago may not show yet.
func (l *Library) List(ctx context.Context) ([]*Stored, error) {
	found, err := l.client.ScheduleClient().List(ctx, client.ScheduleListOptions{PageSize: listPage})
	if err != nil {
		return nil, fmt.Errorf("list workflows: %w", err)
	}
	var all []*Stored
	for found.HasNext() {
		entry, err := found.Next()
		if err != nil {
			return nil, fmt.Errorf("list workflows: %w", err)
		}
		name, ok := names.ParseStoredWorkflowID(entry.ID)
		if !ok {
			continue
		}
		n := parseNote(entry.Note)
		all = append(all, &Stored{Definition: &v1.Definition{Name: name, Description: n.description}, UpdatedAt: n.at})
	}
	slices.SortFunc(all, func(a, b *Stored) int { return strings.Compare(a.Definition.GetName(), b.Definition.GetName()) })
	return all, nil
}

// Delete forgets the definition of a name.
func (l *Library) Delete(ctx context.Context, name string) error {
	err := l.client.ScheduleClient().GetHandle(ctx, names.StoredWorkflowID(name)).Delete(ctx)
	if is[*serviceerror.NotFound](err) {
		return unknown(name)
	}
	if err != nil {
		return fmt.Errorf("delete workflow %s: %w", name, err)
	}
	return nil
}

func unknown(name string) error { return fmt.Errorf("%w: %s", ErrUnknown, name) }

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
