package library

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/schedules"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dataconverter"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

// Errors that the methods of a Library return, for errors.Is.
var (
	// ErrUnknown means that no definition has that name.
	ErrUnknown = errors.New("unknown workflow")
	// ErrExists means that a definition of that name already exists.
	ErrExists = errors.New("workflow exists")
	// ErrOwned means that the definition of that name has another owner or none.
	ErrOwned = errors.New("workflow has another owner")
	// ErrTooLarge means that the definition does not fit into a schedule.
	ErrTooLarge = errors.New("definition is too large")
)

const (
	// maxBytes bounds the size of a stored definition. A schedule holds 2 MB, including everything around the definition.
	maxBytes = 1_600_000
	// maxCalendars bounds the calendars of a schedule, so that they fit beside the definition, and so that Temporal computes the
	// next times in moments. An expression takes one in UTC, and some 100 in a zone whose clocks change.
	maxCalendars = 5000
	// taskTimeout is the time after which Temporal gives a workflow task of a run that was triggered by hand to another
	// process.
	taskTimeout = 6 * time.Second
	// maxUnnoted bounds the schedules that List reads one by one.
	maxUnnoted = 100
)

// Library gives access to the stored definitions of a Temporal namespace. It is safe for concurrent use.
type Library struct {
	// Locked is set if users have to log in. In that case only operators store definitions, and the runs that a schedule
	// starts have the operator role.
	Locked    bool
	client    client.Client
	namespace string
	schedules *schedules.Schedules
	now       func() time.Time
}

// New returns the library of a namespace.
func New(c client.Client, namespace string) *Library {
	return &Library{client: c, namespace: namespace, schedules: schedules.New(c, namespace), now: time.Now}
}

// Stored is a stored definition with its metadata.
type Stored struct {
	// Definition is the definition as it was stored. In a list it has only the name, the description and a2a.
	Definition *v1.Definition
	// UpdatedAt is the time at which the definition was stored, or zero if unknown.
	UpdatedAt time.Time
	// Owner is the owner of the definition, or "" if it has none.
	Owner string
	// Schedule describes when the definition starts runs, or is nil if it starts none.
	Schedule *v1.Schedule
}

// PutOptions sets how Put stores a definition.
type PutOptions struct {
	// Run applies to the runs that the schedule of the definition starts. nil means the defaults.
	Run *v1.RunOptions
	// Replace replaces an existing definition.
	Replace bool
	// Owner becomes the owner of the definition, and replaces only a definition that it owns. "" is no owner.
	Owner string
	// Adopt lets the owner replace any definition.
	Adopt bool
	// State is the state of the schedule. nil means the one in the definition, or that of a replaced schedule which a person has
	// paused.
	State *ScheduleState
}

// ScheduleState is what people change in a schedule that is stored.
type ScheduleState struct {
	Paused bool
	// Said is the remark from when the schedule was last paused or resumed.
	Said string
}

// MayReplace returns ErrOwned if the owner must not replace the definition of that name, which another one owns, or "" for none.
func (o PutOptions) MayReplace(name, owner string) error {
	if o.Owner == "" || o.Adopt || o.Owner == owner {
		return nil
	}
	return notOwned(name, owner)
}

// Put stores a checked definition under its name. It returns ErrExists if the name is taken and o does not let it be replaced, and
// ErrOwned if o.Owner does not own the existing definition.
func (l *Library) Put(ctx context.Context, def *v1.Definition, o PutOptions) (replaced bool, err error) {
	schedule, err := l.scheduleOf(def, o)
	if err != nil {
		return false, err
	}
	id := names.StoredWorkflowID(def.GetName())
	for {
		_, err := l.client.WorkflowService().CreateSchedule(ctx, &workflowservice.CreateScheduleRequest{
			Namespace: l.namespace, ScheduleId: id, Schedule: schedule, RequestId: uuid.NewString(),
		})
		if err == nil {
			return false, nil
		}
		if !is[*serviceerror.WorkflowExecutionAlreadyStarted](err) && !is[*serviceerror.AlreadyExists](err) {
			return false, fmt.Errorf("store workflow %s: %w", def.GetName(), err)
		}
		if !o.Replace && o.Owner == "" {
			return false, fmt.Errorf("%w: %s", ErrExists, def.GetName())
		}
		err = l.replace(ctx, id, schedule, def, o)
		if err == nil {
			return true, nil
		}
		if !is[*serviceerror.NotFound](err) { // otherwise it was deleted meanwhile: try again
			return false, fmt.Errorf("replace workflow %s: %w", def.GetName(), err)
		}
	}
}

// replace replaces the stored schedule. A paused schedule stays paused unless a definition says otherwise.
func (l *Library) replace(ctx context.Context, id string, schedule *schedulepb.Schedule, def *v1.Definition, o PutOptions) error {
	return l.schedules.Change(ctx, id, func(old *workflowservice.DescribeScheduleResponse) error {
		if err := o.MayReplace(def.GetName(), ownerOf(old.GetSchedule())); err != nil {
			return err
		}
		if o.State == nil && !schedule.GetState().GetPaused() && staysPaused(old.GetSchedule(), def) {
			schedule = proto.CloneOf(schedule)
			schedule.State.Paused = true
			note := schedules.ParseNote(schedule.GetState().GetNotes())
			note.Said = schedules.ParseNote(old.GetSchedule().GetState().GetNotes()).Said
			schedule.State.Notes = note.String()
		}
		_, err := l.client.WorkflowService().UpdateSchedule(ctx, &workflowservice.UpdateScheduleRequest{
			Namespace: l.namespace, ScheduleId: id, Schedule: schedule, RequestId: uuid.NewString(),
		})
		return err
	})
}

// ownerMemo is the memo of the runs that a schedule starts which names the owner of the definition. Lists show the note; Temporal's own
// tools overwrite the note when they pause a schedule.
const ownerMemo = "switchyard-owner"

// ownerOf returns the owner of the definition that a schedule stores.
func ownerOf(s *schedulepb.Schedule) string {
	note := schedules.ParseNote(s.GetState().GetNotes())
	memo := s.GetAction().GetStartWorkflow().GetMemo().GetFields()[ownerMemo]
	var owner string
	if !note.StoredAt.IsZero() || dataconverter.New().FromPayload(memo, &owner) != nil {
		return note.Owner
	}
	return owner
}

func notOwned(name, owner string) error {
	if owner == "" {
		return fmt.Errorf("%w: workflow %s was stored without an owner", ErrOwned, name)
	}
	return fmt.Errorf("%w: workflow %s is owned by %s", ErrOwned, name, owner)
}

// staysPaused reports whether a schedule that a person has paused stays paused when def replaces its definition.
func staysPaused(old *schedulepb.Schedule, def *v1.Definition) bool {
	if !old.GetState().GetPaused() || !schedules.HasTimes(old.GetSpec()) || def.GetSchedule().Paused != nil {
		return false
	}
	before, err := definitionOf(old)
	return err != nil || !before.GetSchedule().GetPaused()
}

// scheduleOf returns the schedule that stores a definition.
func (l *Library) scheduleOf(def *v1.Definition, o PutOptions) (*schedulepb.Schedule, error) {
	action, err := l.actionOf(def, o)
	if err != nil {
		return nil, err
	}
	spec := schedules.SpecOf(def.GetSchedule())
	if n := len(spec.GetStructuredCalendar()); n > maxCalendars {
		return nil, fmt.Errorf("%w: the times of its schedule in %s take %d calendars of Temporal, and may take %d; combine expressions or use the time zone UTC", ErrTooLarge, def.GetSchedule().GetTimezone(), n, maxCalendars)
	}
	paused, note := def.GetSchedule().GetPaused(), schedules.Note{StoredAt: l.now(), ExpectedBy: def.GetSchedule().GetExpectedBy(), A2A: def.GetA2A(), Owner: o.Owner, Description: def.GetDescription()}
	if o.State != nil {
		paused, note.Said = o.State.Paused, o.State.Said
	}
	return &schedulepb.Schedule{
		Spec: spec, Policies: schedules.PoliciesOf(def.GetSchedule()),
		Action: &schedulepb.ScheduleAction{Action: &schedulepb.ScheduleAction_StartWorkflow{StartWorkflow: action}},
		State: &schedulepb.ScheduleState{
			// A schedule without times must be paused: Temporal drops an unpaused schedule that has nothing to do.
			Paused: def.GetSchedule() == nil || paused,
			Notes:  note.String(),
		},
	}, nil
}

// actionOf returns the workflow start that the schedule of a definition triggers.
func (l *Library) actionOf(def *v1.Definition, o PutOptions) (*workflowpb.NewWorkflowExecutionInfo, error) {
	references, err := definition.References(def)
	if err != nil {
		return nil, err
	}
	in := &historyv1.RunInput{Definition: def, Input: def.GetSchedule().GetInput(), References: references, Options: o.Run, By: v1.TriggerSchedule}
	if l.Locked {
		in.ByRole, in.SignedDecisions = v1.RoleOperator, true
	}
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
	input, err := dataconverter.New().ToPayloads(in)
	if err != nil {
		return nil, err
	}
	attributes := visibility.Started(def.GetName(), v1.TriggerSchedule, time.Time{}) // the run itself adds the time
	attributes.AddOrigin(in.GetBy(), "")
	encoded, err := attributes.Encode()
	if err != nil {
		return nil, err
	}
	var memo *commonpb.Memo
	if o.Owner != "" {
		owner, err := dataconverter.New().ToPayload(o.Owner)
		if err != nil {
			return nil, err
		}
		memo = &commonpb.Memo{Fields: map[string]*commonpb.Payload{ownerMemo: owner}}
	}
	return &workflowpb.NewWorkflowExecutionInfo{
		WorkflowId: def.GetName(), WorkflowType: &commonpb.WorkflowType{Name: names.RunWorkflow}, Input: input,
		TaskQueue: &taskqueuepb.TaskQueue{Name: names.ControlQueue}, WorkflowTaskTimeout: durationpb.New(taskTimeout), SearchAttributes: encoded, Memo: memo,
	}, nil
}

// Get returns the definition of a name, or ErrUnknown.
func (l *Library) Get(ctx context.Context, name string) (*Stored, error) {
	described, err := l.schedules.Describe(ctx, names.StoredWorkflowID(name))
	if is[*serviceerror.NotFound](err) {
		return nil, unknown(name)
	}
	if err != nil {
		return nil, fmt.Errorf("read workflow %s: %w", name, err)
	}
	def, err := definitionOf(described.GetSchedule())
	if err != nil {
		return nil, fmt.Errorf("read workflow %s: %w", name, err)
	}
	note := schedules.ParseNote(described.GetSchedule().GetState().GetNotes())
	stored := &Stored{Definition: def, UpdatedAt: note.StoredAt, Owner: ownerOf(described.GetSchedule()), Schedule: schedules.FromDescription(names.StoredWorkflowID(name), described)}
	if stored.UpdatedAt.IsZero() { // Temporal's own tools have overwritten the note
		stored.UpdatedAt = cmp.Or(described.GetInfo().GetUpdateTime(), described.GetInfo().GetCreateTime()).AsTime()
	}
	return stored, nil
}

// definitionOf returns the definition that a schedule stores.
func definitionOf(s *schedulepb.Schedule) (*v1.Definition, error) {
	action := s.GetAction().GetStartWorkflow()
	if action.GetWorkflowType().GetName() != names.RunWorkflow || len(action.GetInput().GetPayloads()) != 1 {
		return nil, errors.New("its schedule does not start this workflow")
	}
	in := &historyv1.RunInput{}
	if err := dataconverter.New().FromPayloads(action.GetInput(), in); err != nil {
		return nil, err
	}
	in, err := definition.Unpack(in)
	return in.GetDefinition(), err
}

// List returns all stored definitions in the order of their names, without their tasks. Definitions that were stored or
// deleted a moment ago may be missing or still listed.
func (l *Library) List(ctx context.Context) ([]*Stored, error) {
	var all []*Stored
	var unnoted []int
	err := l.schedules.Entries(ctx, func(entry *schedulepb.ScheduleListEntry) {
		name, ok := names.ParseStoredWorkflowID(entry.GetScheduleId())
		if !ok {
			return
		}
		note := schedules.ParseNote(entry.GetInfo().GetNotes())
		if note.StoredAt.IsZero() {
			unnoted = append(unnoted, len(all))
		}
		all = append(all, &Stored{
			Definition: &v1.Definition{Name: name, Description: note.Description, A2A: note.A2A}, UpdatedAt: note.StoredAt, Owner: note.Owner, Schedule: schedules.FromList(entry),
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list workflows: %w", err)
	}
	// Read the schedules whose notes were overwritten by Temporal's own tools one by one.
	for _, i := range unnoted[:min(len(unnoted), maxUnnoted)] {
		if whole, err := l.Get(ctx, all[i].Definition.GetName()); err == nil { // otherwise it was deleted, or does not store a definition
			def := all[i].Definition
			def.Description, def.A2A, all[i].UpdatedAt, all[i].Owner = whole.Definition.GetDescription(), whole.Definition.GetA2A(), whole.UpdatedAt, whole.Owner
		}
	}
	slices.SortFunc(all, func(a, b *Stored) int { return strings.Compare(a.Definition.GetName(), b.Definition.GetName()) })
	return all, nil
}

// Delete deletes the definition with a name. It returns ErrUnknown if no definition has the name, and ErrOwned if the
// definition has another owner. An empty owner matches every owner.
func (l *Library) Delete(ctx context.Context, name, owner string) error {
	if owner != "" {
		stored, err := l.Get(ctx, name)
		if err != nil {
			return err
		}
		if stored.Owner != owner {
			return notOwned(name, stored.Owner)
		}
	}
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
