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

// requests builds the requests that go to nodes. It owns the stored copies of what many requests carry.
type requests struct {
	*execution
	ancestry ancestorReader

	sharedContext, sharedInput sharedObject
	version                    int64                   // of the newest stored object
	ancestors                  map[int]storedAncestors // by task
}

// attemptRequest returns the request fields that identify an attempt, which suffice if its node already has the attempt.
func (rq *requests) attemptRequest(u *flight.Unit) *historyv1.ExecuteRequest {
	first := u.Members[0]
	task, rec, own := rq.core.TaskOf(first), rq.core.Task(first), rq.records.Of(first)
	def := rq.core.Definition(first)
	req := &historyv1.ExecuteRequest{
		RunId:          rq.id,
		Chain:          rq.chain,
		Execution:      rq.executionID(),
		Workflow:       rq.in.GetDefinition().GetName(),
		Task:           rq.graph.Name(task),
		Attempt:        rec.Attempt,
		Claim:          rec.Claim,
		Node:           u.Node,
		Type:           def.GetType(),
		InlineLimit:    rq.inlineLimit(),
		Generation:     rq.in.GetGeneration(),
		Incarnation:    u.Incarnation,
		Unacknowledged: own.Unacknowledged,
		LeftRecords:    own.Left,
		Checkpoint:     own.Checkpoint,
	}
	if t := definition.Timeout(def); t > 0 {
		req.Timeout = durationpb.New(t)
	}
	if task != first {
		rq.addInstances(req, u.Members)
	}
	return req
}

// executeRequest returns the full request for an attempt that is new to its node. The only error is calls.ErrInterrupted.
func (rq *requests) executeRequest(u *flight.Unit) (*historyv1.ExecuteRequest, error) {
	first := u.Members[0]
	task, def := rq.core.TaskOf(first), rq.core.Definition(first)
	req := rq.attemptRequest(u)
	req.Spec, req.Env, req.SecretEnv, req.Input, req.Resources = def.GetSpec(), def.GetEnv(), def.GetSecretEnv(), def.GetInput(), def.GetResources()
	req.Gpus, req.NumaNode, req.Notices = u.GPUs, u.NUMANode, rq.notices(u.Members)
	req.Continues, req.Requeues = rq.records.Of(first).Continues, rq.records.Of(first).Requeues
	var err error
	if req.Context, err = rq.shared(&rq.sharedContext, "context", rq.fanOuts.Context()); err != nil {
		return nil, err
	}
	if req.RunInput, err = rq.shared(&rq.sharedInput, "input", rq.in.GetInput()); err != nil {
		return nil, err
	}
	req.Templates, req.Ends = definition.HasTemplates(def), rq.ancestry.ancestorEnds(task)
	if part := rq.in.GetPartition(); part != nil {
		req.Parents, req.Views = part.GetParents(), part.GetViews()
		return req, rq.shareAncestors(req, task)
	}
	if req.Parents, err = rq.ancestry.parentOutputs(task); err != nil {
		return nil, err
	}
	if req.Templates {
		req.Views = map[string]*historyv1.ParentView{}
		if err := rq.ancestry.addViews(req.Views, rq.in.GetReferences()[req.Task].GetTemplates()); err != nil {
			return nil, err
		}
	}
	return req, rq.shareAncestors(req, task)
}

// shareAncestors moves the ancestors' data of a request to the store if it is large. The instances of a task share one copy.
// The only error is calls.ErrInterrupted.
func (rq *requests) shareAncestors(req *historyv1.ExecuteRequest, task int) error {
	if writtenByAncestors(req) <= maxInlineAncestors {
		return nil
	}
	version := rq.ancestorsVersion(task)
	if rq.ancestors[task].version != version || rq.ancestors[task].key == "" {
		all, key := &historyv1.Ancestors{Parents: req.GetParents(), Views: req.GetViews(), Ends: req.GetEnds()}, ""
		err := rq.calls.MustNow("store the outputs of the ancestors of "+req.GetTask(), names.SaveAncestorsActivity, &key, rq.home(), all)
		if errors.Is(err, calls.ErrInterrupted) {
			return err
		}
		if err != nil {
			workflow.GetLogger(rq.ctx).Warn("could not store the outputs of ancestors; each request carries them", "task", req.GetTask(), "error", err)
			return nil
		}
		rq.calls.Charge(calls.CommandCharge)
		rq.ancestors[task] = storedAncestors{key: key, version: version}
	}
	req.Parents, req.Views, req.Ends, req.Ancestors = nil, nil, nil, rq.ancestors[task].key
	return nil
}

// ancestorsVersion returns a number that changes when an ancestor of a task has been rerun.
func (rq *requests) ancestorsVersion(task int) uint64 {
	h := fnv.New64a()
	for _, i := range rq.graph.Ancestors(task) {
		rec := rq.core.Task(i)
		h.Write([]byte(fmt.Sprintln(i, rec.Claim, rec.State, rq.records.Of(i).Reopenings)))
	}
	return h.Sum64()
}

// storedAncestors is a stored copy of the data that the ancestors of a task left.
type storedAncestors struct {
	key     string
	version uint64
}

// addInstances adds the instances of the task that a request is for.
func (rq *requests) addInstances(req *historyv1.ExecuteRequest, members []int) {
	number := int32(rq.core.Number(members[0]))
	count, _ := rq.instanceCount(rq.core.Group(members[0]))
	req.Index, req.Count = &number, int32(count)
	req.Item, req.Items = rq.item(members[0])
	if len(members) == 1 {
		return
	}
	req.Item, req.Checkpoint = nil, nil
	for _, m := range members {
		rec, own := rq.core.Task(m), rq.records.Of(m)
		member := &historyv1.Member{
			Index: int32(rq.core.Number(m)), Attempt: rec.Attempt, Claim: rec.Claim,
			Unacknowledged: own.Unacknowledged, LeftRecords: own.Left, Checkpoint: own.Checkpoint,
		}
		member.Item, _ = rq.item(m)
		req.Batch = append(req.Batch, member)
	}
}

// notices returns the lines with which the log of a dispatch begins. For a batch it returns the notice of the first instance that
// has one.
func (rq *requests) notices(members []int) []string {
	for _, i := range members {
		text := rq.records.Of(i).Uncached
		if text == "" {
			continue
		}
		if len(members) > 1 {
			text = rq.core.Name(i) + " " + text
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
func (rq *requests) shared(kept *sharedObject, what string, object *structpb.Struct) (*historyv1.Shared, error) {
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
		rq.version = max(rq.version+1, rq.now().UnixMicro()) // versions also increase from one execution to the next
		err := rq.calls.MustNow("store its "+what, names.SaveSharedActivity, &kept.shared.Key,
			rq.home(), rq.in.GetGeneration(), what, rq.version, object)
		if errors.Is(err, calls.ErrInterrupted) {
			*kept = sharedObject{}
			return nil, err
		}
		if err != nil {
			workflow.GetLogger(rq.ctx).Warn("could not store an object for reuse", "object", what, "error", err)
			kept.shared = &historyv1.Shared{Value: object}
		}
	}
	return kept.shared, nil
}
