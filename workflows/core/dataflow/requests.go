package dataflow

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/fanout"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/definition"
)

// AttemptRequest returns the request fields that identify an attempt, which suffice if its node already has the attempt.
func (s *State) AttemptRequest(u *flight.Unit) *historyv1.ExecuteRequest {
	first := u.Members[0]
	task, rec, own := s.core.TaskOf(first), s.core.Task(first), s.records.Of(first)
	def := s.core.Definition(first)
	req := &historyv1.ExecuteRequest{
		RunId:          s.RunID,
		Chain:          s.Chain,
		Execution:      s.Execution,
		Workflow:       s.Input.GetDefinition().GetName(),
		Owner:          s.Input.GetBy(),
		Task:           s.graph.Name(task),
		Attempt:        rec.Attempt,
		Claim:          rec.Claim,
		Node:           u.Node,
		Type:           def.GetType(),
		InlineLimit:    s.InlineLimit(),
		Generation:     s.Input.GetGeneration(),
		Incarnation:    u.Assignment.GetIncarnation(),
		Unacknowledged: own.Unacknowledged,
		LeftRecords:    own.Left,
		Checkpoint:     own.Checkpoint,
	}
	if t := definition.Timeout(def); t > 0 {
		req.Timeout = durationpb.New(t)
	}
	if task != first {
		s.addInstances(req, u.Members)
	}
	return req
}

// ReserveRequest returns the request for the place of a member of a gang on its node. With isUndone the node need not keep the place.
func (s *State) ReserveRequest(u *flight.Unit, isUndone bool) *historyv1.ExecuteRequest {
	req := s.AttemptRequest(u)
	req.Resources, req.Gpus, req.NumaNode = s.core.Definition(u.Lead).GetResources(), u.GPUs, u.NUMANode
	req.Gang, req.Stop, req.Checkpoint = &historyv1.Gang{}, isUndone, nil
	return req
}

// addInstances adds the instances of the task that a request is for.
func (s *State) addInstances(req *historyv1.ExecuteRequest, members []int) {
	number := int32(s.core.Number(members[0]))
	count, _ := s.flight.InstanceCount(s.core.Group(members[0]))
	req.Index, req.Count = &number, int32(count)
	req.Item, req.Items = s.item(members[0])
	if len(members) == 1 {
		return
	}
	req.Item, req.Checkpoint = nil, nil
	for _, m := range members {
		rec, own := s.core.Task(m), s.records.Of(m)
		member := &historyv1.Member{
			Index: int32(s.core.Number(m)), Attempt: rec.Attempt, Claim: rec.Claim,
			Unacknowledged: own.Unacknowledged, LeftRecords: own.Left, Checkpoint: own.Checkpoint,
		}
		member.Item, _ = s.item(m)
		req.Batch = append(req.Batch, member)
	}
}

// item returns the foreach item of instance i, or the key of the stored list that holds the item. It returns neither if the
// task has no foreach.
func (s *State) item(i int) (item *structpb.Value, stored string) {
	items, number := s.records.ItemsOf(s.core.Group(i), s.core.Definition(i)), s.core.Number(i)
	if values := items.GetList().GetValues(); items.GetKey() == "" && number < len(values) {
		return values[number], ""
	}
	return nil, items.GetKey()
}

// notices returns the lines with which the log of a dispatch begins. For a batch it returns the notice of the first instance that
// has one.
func (s *State) notices(members []int) []string {
	for _, i := range members {
		text := s.records.Of(i).Uncached
		if text == "" {
			continue
		}
		if len(members) > 1 {
			text = s.core.Name(i) + " " + text
		}
		return []string{text}
	}
	return nil
}

// ExecuteRequest returns the full request for an attempt that is new to its node.
func (d *Draft) ExecuteRequest(u *flight.Unit, now time.Time) (*historyv1.ExecuteRequest, *Call) {
	first := u.Members[0]
	task, def, own := d.core.TaskOf(first), d.core.Definition(first), d.records.Of(first)
	req := d.AttemptRequest(u)
	req.Spec, req.Env, req.SecretEnv, req.Input, req.Resources = def.GetSpec(), def.GetEnv(), def.GetSecretEnv(), def.GetInput(), def.GetResources()
	req.ApprovedEnvironments = d.Input.GetWorkflows().GetEnvironments()
	req.Gpus, req.NumaNode, req.Notices, req.Gang = u.GPUs, u.NUMANode, d.notices(u.Members), u.GangOf()
	req.Continues, req.Requeues, req.Templates, req.Ends = own.Continues, own.Requeues, definition.HasTemplates(def), d.ancestorEnds(task)
	if definition.KeepsFiles(def) {
		req.Source, req.GitSource = d.Input.GetSource(), definition.GitSource(d.Input, def)
	}
	req.StopSignal = def.GetStop().GetSignal()
	if grace := definition.StopGrace(def); grace > 0 {
		req.StopGrace = durationpb.New(grace)
	}
	var call *Call
	if req.Context, call = d.share(&d.context, "context", d.fanOuts.Context(), now); call != nil {
		return nil, call
	}
	if req.RunInput, call = d.share(&d.input, "input", d.Input.GetInput(), now); call != nil {
		return nil, call
	}
	if d.core.IsFinally(task) || d.Input.GetPartition() != nil {
		req.RunView = d.runView()
	}
	req.Artifacts = def.GetArtifacts()
	if part := d.Input.GetPartition(); part != nil {
		req.Parents, req.Views = part.GetParents(), part.GetViews()
		return req, d.shareAncestors(req, task)
	}
	if call := d.addParents(task); call != nil {
		return nil, call
	}
	req.Workspace = d.flight.WorkspaceOf(first)
	if req.Templates || len(req.Artifacts.GetIn()) > 0 {
		if call := d.addViews(d.Input.GetReferences()[req.Task].GetTemplates()); call != nil {
			return nil, call
		}
	}
	req.Parents, req.Views = d.parents, d.views
	return req, d.shareAncestors(req, task)
}

// PartitionInput returns the input of a partition's child: the task without its dependencies and conditions.
func (d *Draft) PartitionInput(o *fanout.Opening) (*historyv1.RunInput, *Call) {
	name, in, part := d.graph.Name(o.Task), d.Input, o.Partition
	refs := in.GetReferences()[name]
	if call := d.addParents(o.Task); call != nil {
		return nil, call
	}
	if call := d.addViews(slices.Concat(refs.GetTemplates(), refs.GetCache())); call != nil {
		return nil, call
	}
	task := proto.CloneOf(d.core.Definition(o.Task))
	task.DependsOn, task.Condition, task.When, task.OnFailure, task.Deadline, task.ExpectedWithin, task.ContinueOnError = nil, "", "", "", "", "", false
	part.Items, part.Paused, part.Ends = d.records.Of(o.Task).Items, d.flight.IsPaused(), d.ancestorEnds(o.Task)
	part.Parents, part.Views = d.parents, d.views
	if d.graph.IsFinally(o.Task) {
		part.RunView = d.runView()
	}
	return &historyv1.RunInput{
		Definition: &v1.Definition{
			Name: in.GetDefinition().GetName(), Context: d.fanOuts.Context(), Tasks: map[string]*v1.TaskDefinition{name: task}, Source: in.GetDefinition().GetSource(),
		},
		Input: in.GetInput(), References: map[string]*historyv1.ConditionReferences{name: refs},
		Options: in.GetOptions(), Generation: in.GetGeneration(), Partition: part, Rerun: o.Rerun, Retry: o.Requeued,
		ParentRun: in.GetParentRun(), ParentTask: in.GetParentTask(), Depth: in.GetDepth(),
		ParentFirst: d.First, ByRole: in.GetByRole(), SignedDecisions: in.GetSignedDecisions(), CacheScope: d.cacheScope(),
		Workflows: in.GetWorkflows(), HeldLocks: d.flight.HeldBy(nil), Source: in.GetSource(),
	}, nil
}
