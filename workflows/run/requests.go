package run

import (
	"errors"
	"fmt"
	"hash/fnv"

	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/calls"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

// These are the most bytes that an attempt may return in its result and that may travel in a request. Anything larger goes
// through the store.
const (
	maxInlineResult = 24 << 10
	maxInlineTotal  = 16 << 20
	maxInlineShared = 4 << 10
	// maxInlineAncestors is the limit for the data of all ancestors together. It is high because a store is slower than a
	// request.
	maxInlineAncestors = 16 << 10
)

// attemptRequest returns the request fields that identify an attempt, which suffice if its node already has the attempt.
func (r *run) attemptRequest(u *flight.Unit) *historyv1.ExecuteRequest {
	first := u.Members[0]
	task, rec, own := r.core.TaskOf(first), r.core.Task(first), r.records.Of(first)
	def := r.core.Definition(first)
	req := &historyv1.ExecuteRequest{
		RunId:          r.id,
		Chain:          r.chain,
		Execution:      r.executionID(),
		Workflow:       r.in.GetDefinition().GetName(),
		Task:           r.graph.Name(task),
		Attempt:        rec.Attempt,
		Claim:          rec.Claim,
		Node:           u.Node,
		Type:           def.GetType(),
		InlineLimit:    r.inlineLimit(),
		Generation:     r.in.GetGeneration(),
		Incarnation:    u.Incarnation,
		Unacknowledged: own.Unacknowledged,
		LeftRecords:    own.Left,
		Checkpoint:     own.Checkpoint,
	}
	if t := definition.Timeout(def); t > 0 {
		req.Timeout = durationpb.New(t)
	}
	if task != first {
		r.addInstances(req, u.Members)
	}
	return req
}

// executeRequest returns the full request for an attempt that is new to its node. The only error is calls.ErrInterrupted.
func (r *run) executeRequest(u *flight.Unit) (*historyv1.ExecuteRequest, error) {
	first := u.Members[0]
	task, def := r.core.TaskOf(first), r.core.Definition(first)
	req := r.attemptRequest(u)
	req.Spec, req.Env, req.SecretEnv, req.Input, req.Resources = def.GetSpec(), def.GetEnv(), def.GetSecretEnv(), def.GetInput(), def.GetResources()
	req.Gpus, req.NumaNode, req.Notices = u.GPUs, u.NUMANode, r.notices(u.Members)
	req.Continues, req.Requeues = r.records.Of(first).Continues, r.records.Of(first).Requeues
	var err error
	if req.Context, err = r.shared(&r.sharedContext, "context", r.fanOuts.Context()); err != nil {
		return nil, err
	}
	if req.RunInput, err = r.shared(&r.sharedInput, "input", r.in.GetInput()); err != nil {
		return nil, err
	}
	req.Templates, req.Ends = definition.HasTemplates(def), r.ancestorEnds(task)
	if part := r.in.GetPartition(); part != nil {
		req.Parents, req.Views = part.GetParents(), part.GetViews()
		return req, r.shareAncestors(req, task)
	}
	if req.Parents, err = r.parentOutputs(task); err != nil {
		return nil, err
	}
	if req.Templates {
		req.Views = map[string]*historyv1.ParentView{}
		if err := r.addViews(req.Views, r.in.GetReferences()[req.Task].GetTemplates()); err != nil {
			return nil, err
		}
	}
	return req, r.shareAncestors(req, task)
}

// shareAncestors moves the ancestors' data of a request to the store if it is large. The instances of a task share one copy.
// The only error is calls.ErrInterrupted.
func (r *run) shareAncestors(req *historyv1.ExecuteRequest, task int) error {
	if writtenByAncestors(req) <= maxInlineAncestors {
		return nil
	}
	version := r.ancestorsVersion(task)
	if r.ancestors[task].version != version || r.ancestors[task].key == "" {
		all, key := &historyv1.Ancestors{Parents: req.GetParents(), Views: req.GetViews(), Ends: req.GetEnds()}, ""
		err := r.calls.MustNow("store the outputs of the ancestors of "+req.GetTask(), names.SaveAncestorsActivity, &key, r.home(), all)
		if errors.Is(err, calls.ErrInterrupted) {
			return err
		}
		if err != nil {
			workflow.GetLogger(r.ctx).Warn("could not store the outputs of ancestors; each request carries them", "task", req.GetTask(), "error", err)
			return nil
		}
		r.calls.Charge(calls.CommandCharge)
		r.ancestors[task] = storedAncestors{key: key, version: version}
	}
	req.Parents, req.Views, req.Ends, req.Ancestors = nil, nil, nil, r.ancestors[task].key
	return nil
}

// ancestorsVersion returns a number that changes when an ancestor of a task has been rerun.
func (r *run) ancestorsVersion(task int) uint64 {
	h := fnv.New64a()
	for _, i := range r.graph.Ancestors(task) {
		rec := r.core.Task(i)
		h.Write([]byte(fmt.Sprintln(i, rec.Claim, rec.State, r.records.Of(i).Reopenings)))
	}
	return h.Sum64()
}

// storedAncestors is a stored copy of the data that the ancestors of a task left.
type storedAncestors struct {
	key     string
	version uint64
}

// addInstances adds the instances of the task that a request is for.
func (r *run) addInstances(req *historyv1.ExecuteRequest, members []int) {
	number := int32(r.core.Number(members[0]))
	count, _ := r.instanceCount(r.core.Group(members[0]))
	req.Index, req.Count = &number, int32(count)
	req.Item, req.Items = r.item(members[0])
	if len(members) == 1 {
		return
	}
	req.Item, req.Checkpoint = nil, nil
	for _, m := range members {
		rec, own := r.core.Task(m), r.records.Of(m)
		member := &historyv1.Member{
			Index: int32(r.core.Number(m)), Attempt: rec.Attempt, Claim: rec.Claim,
			Unacknowledged: own.Unacknowledged, LeftRecords: own.Left, Checkpoint: own.Checkpoint,
		}
		member.Item, _ = r.item(m)
		req.Batch = append(req.Batch, member)
	}
}

// notices returns the lines with which the log of a dispatch begins. For a batch it returns the notice of the first instance that
// has one.
func (r *run) notices(members []int) []string {
	for _, i := range members {
		text := r.records.Of(i).Uncached
		if text == "" {
			continue
		}
		if len(members) > 1 {
			text = r.core.Name(i) + " " + text
		}
		return []string{text}
	}
	return nil
}

// sharedObject caches the form in which many requests carry the same object.
type sharedObject struct {
	of     *structpb.Struct
	shared *historyv1.Shared
}

// shared returns an object inline if it is small, else a reference to its stored copy, or nil if it is empty. The object is
// stored once. The only error is calls.ErrInterrupted.
func (r *run) shared(kept *sharedObject, what string, object *structpb.Struct) (*historyv1.Shared, error) {
	if kept.of == object {
		return kept.shared, nil
	}
	kept.of, kept.shared = object, nil
	switch {
	case len(object.GetFields()) == 0:
	case proto.Size(object) <= maxInlineShared:
		kept.shared = &historyv1.Shared{Value: object}
	default:
		kept.shared = &historyv1.Shared{}
		r.version = max(r.version+1, r.now().UnixMicro()) // versions also increase from one execution to the next
		err := r.calls.MustNow("store its "+what, names.SaveSharedActivity, &kept.shared.Key,
			r.home(), r.in.GetGeneration(), what, r.version, object)
		if errors.Is(err, calls.ErrInterrupted) {
			*kept = sharedObject{}
			return nil, err
		}
		if err != nil {
			workflow.GetLogger(r.ctx).Warn("could not store an object for reuse", "object", what, "error", err)
			kept.shared = &historyv1.Shared{Value: object}
		}
	}
	return kept.shared, nil
}
