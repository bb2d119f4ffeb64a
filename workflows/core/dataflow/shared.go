package dataflow

import (
	"fmt"
	"hash/fnv"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
)

// These are the most bytes that may travel in a request. Anything larger goes through the store.
const (
	maxInlineShared = 4 << 10
	// maxInlineAncestors is the limit for the data of all ancestors together. It is high because a store is slower than a
	// request.
	maxInlineAncestors = 16 << 10
)

// shared is the form in which many requests carry the same object.
type shared struct {
	of   *structpb.Struct
	form *historyv1.Shared
}

// share returns an object inline if it is small, else a reference to its stored copy, or nil if it is empty. The object is stored
// once.
func (d *Draft) share(kept *shared, what string, object *structpb.Struct, now time.Time) (*historyv1.Shared, *Call) {
	switch {
	case kept.of == object:
	case len(object.GetFields()) == 0:
		*kept = shared{of: object}
	case proto.Size(object) <= maxInlineShared:
		*kept = shared{of: object, form: &historyv1.Shared{Value: object}}
	default:
		d.version = max(d.version+1, now.UnixMicro()) // versions also increase from one execution to the next
		return nil, &Call{
			Summary: "store its " + what, Activity: names.SaveSharedActivity,
			Args: []any{d.Home, d.Input.GetGeneration(), what, d.version, object}, Answer: new(string), copy: kept, object: object,
		}
	}
	return kept.form, nil
}

// ancestors is a stored copy of the data that the ancestors of a task left.
type ancestors struct {
	key     string
	version uint64
}

// shareAncestors moves the ancestors' data of a request to the store if it is large. The instances of a task share one copy.
func (d *Draft) shareAncestors(req *historyv1.ExecuteRequest, task int) *Call {
	if d.isWhole || writtenByAncestors(req) <= maxInlineAncestors {
		return nil
	}
	kept, version := d.ancestors[task], d.ancestorsVersion(task)
	if kept.version != version || kept.key == "" {
		return &Call{
			Summary: "store the outputs of the ancestors of " + req.GetTask(), Activity: names.SaveAncestorsActivity,
			Args:   []any{d.Home, &historyv1.Ancestors{Parents: req.GetParents(), Views: req.GetViews(), Ends: req.GetEnds()}},
			Answer: new(string), task: task, version: version,
		}
	}
	req.Parents, req.Views, req.Ends, req.Ancestors = nil, nil, nil, kept.key
	return nil
}

// ancestorsVersion returns a number that changes when an ancestor of a task has been rerun.
func (s *State) ancestorsVersion(task int) uint64 {
	h := fnv.New64a()
	for _, i := range s.graph.Ancestors(task) { // a task in finally begins only after all others have ended for good
		rec := s.core.Task(i)
		h.Write([]byte(fmt.Sprintln(i, rec.Claim, rec.State, s.records.Of(i).Reopenings)))
	}
	return h.Sum64()
}
