package visibility

import (
	"cmp"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// Attributes are the search attributes of a run. The zero value of a field means that the attribute is absent.
type Attributes struct {
	// Workflow is the name of the workflow.
	Workflow string
	// State is the state of the run. A terminated run keeps its last state; its status in Temporal shows the termination.
	State string
	// Trigger is what started the newest generation, one of v1.Triggers.
	Trigger string
	// Parent is the ID of the run whose task started this one.
	Parent string
	// Owner is who submitted the run or its outermost parent, like the run's submittedBy.
	Owner string
	// Batch is the name that links runs submitted together.
	Batch string
	// Labels are the node labels that its tasks require, sorted.
	Labels []string
	// Nodes are the nodes that tasks were sent to, in the order of the first task on each.
	Nodes []string
	// Types are the types of its tasks, sorted.
	Types []string
	// Text is for full-text searches: the error with which the run has ended, the description, and the names of the tasks.
	Text string
	// Submitted is when the run was submitted, in microseconds, the precision of databases.
	Submitted time.Time
	// LateSince is since when the run, or the first of its tasks, is late, in microseconds. It stays after the end.
	LateSince time.Time
	// DeadLetters is the number of its dead-lettered tasks and instances.
	DeadLetters int
}

const (
	// maxListBytes is the maximum size of a list as JSON: Temporal accepts 2 KiB per value.
	maxListBytes = 1800
	// maxTextBytes is the maximum length of the text, which takes at most six times as much as JSON.
	maxTextBytes = 300
	// maxErrorBytes is the part of the text that the error of a run may take.
	maxErrorBytes = 150
	// maxOwnerBytes and maxBatchBytes limit the values of a run that was started in Temporal; a gateway allows less.
	maxOwnerBytes, maxBatchBytes = 340, 63
	// maxNodes limits the number of updates to visibility by a run that spreads over many nodes.
	maxNodes = 32
)

// MaxBytes is the maximum size of an update of all attributes, as JSON.
const MaxBytes = 8 << 10

var (
	workflowKey    = temporal.NewSearchAttributeKeyKeyword(names.WorkflowAttribute)
	stateKey       = temporal.NewSearchAttributeKeyKeyword(names.StateAttribute)
	triggerKey     = temporal.NewSearchAttributeKeyKeyword(names.TriggerAttribute)
	parentKey      = temporal.NewSearchAttributeKeyKeyword(names.ParentAttribute)
	ownerKey       = temporal.NewSearchAttributeKeyKeyword(names.OwnerAttribute)
	batchKey       = temporal.NewSearchAttributeKeyKeyword(names.BatchAttribute)
	labelsKey      = temporal.NewSearchAttributeKeyKeywordList(names.LabelsAttribute)
	nodesKey       = temporal.NewSearchAttributeKeyKeywordList(names.NodesAttribute)
	typesKey       = temporal.NewSearchAttributeKeyKeywordList(names.TypesAttribute)
	textKey        = temporal.NewSearchAttributeKeyString(names.TextAttribute)
	submittedKey   = temporal.NewSearchAttributeKeyTime(names.SubmittedAttribute)
	lateSinceKey   = temporal.NewSearchAttributeKeyTime(names.LateSinceAttribute)
	deadLettersKey = temporal.NewSearchAttributeKeyInt64(names.DeadLettersAttribute)
)

// scheduleAttribute is Temporal's own attribute of workflows that a schedule has started.
const scheduleAttribute = "TemporalScheduledById"

// Types returns the types of the search attributes, by name.
func Types() map[string]enumspb.IndexedValueType {
	types := map[string]enumspb.IndexedValueType{}
	for _, key := range []temporal.SearchAttributeKey{
		workflowKey, stateKey, triggerKey, parentKey, ownerKey, batchKey, labelsKey, nodesKey, typesKey, textKey, submittedKey, lateSinceKey, deadLettersKey,
	} {
		types[key.GetName()] = key.GetValueType()
	}
	return types
}

// Started returns the attributes of a run that is about to start.
func Started(workflow, trigger string, at time.Time) Attributes {
	return Attributes{Workflow: workflow, State: v1.RunPending, Trigger: trigger, Submitted: at.Truncate(time.Microsecond)}
}

// StartedBy returns the attributes of a run that a task of another run is about to start.
func StartedBy(parent, workflow string, at time.Time) Attributes {
	a := Started(workflow, v1.TriggerChild, at)
	a.Parent = parent
	return a
}

// AddOrigin adds who submitted the run, and its batch. An empty value changes nothing.
func (a *Attributes) AddOrigin(owner, batch string) {
	a.Owner, a.Batch = cmp.Or(cut(owner, maxOwnerBytes), a.Owner), cmp.Or(cut(batch, maxBatchBytes), a.Batch)
}

// Reopened returns the attributes of a run that is about to be restarted.
func (a Attributes) Reopened() Attributes {
	a.State, a.Trigger, a.LateSince, a.DeadLetters = v1.RunPending, v1.TriggerRetry, time.Time{}, 0
	return a
}

// Describe adds the attributes that follow from the definition of a run.
func (a *Attributes) Describe(def *v1.Definition) {
	a.Workflow, a.Labels, a.Types = def.GetName(), nil, nil
	text := []string{def.GetDescription()}
	//workflowcheck:ignore (everything is sorted below)
	for name, task := range v1.AllTasks(def) {
		text = append(text, name)
		a.Types = append(a.Types, task.GetType())
		a.Labels = append(a.Labels, task.GetConstraints().GetNodeLabels()...)
		a.Labels = append(a.Labels, task.GetConstraints().GetAnyLabels()...)
	}
	slices.Sort(text[1:])
	a.Types, a.Labels = bounded(sorted(a.Types)), bounded(sorted(a.Labels))
	a.Text = cut(strings.TrimSpace(strings.Join(text, " ")), maxTextBytes)
}

// End adds how the run has ended.
func (a *Attributes) End(state, text string) {
	a.State = state
	if text != "" {
		a.Text = cut(cut(text, maxErrorBytes)+" "+a.Text, maxTextBytes)
	}
}

// AddLate adds that something of the run is late since a time.
func (a *Attributes) AddLate(since time.Time) {
	if a.LateSince.IsZero() || since.Before(a.LateSince) {
		a.LateSince = since.Truncate(time.Microsecond)
	}
}

// AddNode adds a node, unless the list is full.
func (a *Attributes) AddNode(node string) {
	if node == "" || slices.Contains(a.Nodes, node) || len(a.Nodes) == maxNodes {
		return
	}
	a.Nodes = bounded(append(slices.Clip(a.Nodes), node))
}

func sorted(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// bounded returns as many leading items of a list as fit in an attribute.
func bounded(list []string) []string {
	size := 2
	for i, value := range list {
		if size += jsonBytes(value) + 1; size > maxListBytes {
			return list[:i]
		}
	}
	return list
}

// jsonBytes returns an upper estimate of the size of a text as JSON.
func jsonBytes(text string) int {
	n := len(text) + 2
	for _, c := range []byte(text) {
		if c < ' ' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c == 0x7f {
			n += 5
		}
	}
	return n
}

func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}

// Updates returns the changes since other attributes were upserted. An attribute is never removed.
func (a Attributes) Updates(since Attributes) []temporal.SearchAttributeUpdate {
	var updates []temporal.SearchAttributeUpdate
	for _, k := range []struct {
		key     temporal.SearchAttributeKeyKeyword
		is, was string
	}{
		{workflowKey, a.Workflow, since.Workflow}, {stateKey, a.State, since.State},
		{triggerKey, a.Trigger, since.Trigger}, {parentKey, a.Parent, since.Parent},
		{ownerKey, a.Owner, since.Owner}, {batchKey, a.Batch, since.Batch},
	} {
		if k.is != k.was && k.is != "" {
			updates = append(updates, k.key.ValueSet(k.is))
		}
	}
	for _, k := range []struct {
		key     temporal.SearchAttributeKeyKeywordList
		is, was []string
	}{{labelsKey, a.Labels, since.Labels}, {nodesKey, a.Nodes, since.Nodes}, {typesKey, a.Types, since.Types}} {
		if !slices.Equal(k.is, k.was) && len(k.is) > 0 {
			updates = append(updates, k.key.ValueSet(k.is))
		}
	}
	if a.Text != since.Text && a.Text != "" {
		updates = append(updates, textKey.ValueSet(a.Text))
	}
	if !a.Submitted.Equal(since.Submitted) && !a.Submitted.IsZero() {
		updates = append(updates, submittedKey.ValueSet(a.Submitted.UTC()))
	}
	if !a.LateSince.Equal(since.LateSince) && !a.LateSince.IsZero() {
		updates = append(updates, lateSinceKey.ValueSet(a.LateSince.UTC()))
	}
	if a.DeadLetters != since.DeadLetters {
		updates = append(updates, deadLettersKey.ValueSet(int64(a.DeadLetters)))
	}
	return updates
}
