package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/artifacts"
	"switchyard/activities/results"
	"switchyard/activities/store"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/names"
)

const (
	// maxCollectedBytes bounds the collected outputs of a task's instances together. The same limit applies to a single
	// output.
	maxCollectedBytes = 8 << 20
	// collectReads is how many records are read in parallel.
	collectReads = 16
)

// Collect combines the outputs of a task's instances into one list, with their artifacts, the states of the instances that did not
// complete and null as their output. The list is in the answer if it is small, and in the store otherwise. It is absent
// if every instance completed without output and artifacts. If the list would be too large, or a result is missing or unreadable, the
// answer has the states and the reason. If the store is away, Collect returns an error.
func (c *Control) Collect(ctx context.Context, req *historyv1.CollectRequest) (*historyv1.FanOutView, error) {
	var view *historyv1.FanOutView
	var list *historyv1.ItemList
	var left *historyv1.InstanceArtifacts
	var plain bool
	err := c.insist(ctx, names.Home(req.GetRunId(), req.GetChain()), func() (err error) {
		view, list, left = &historyv1.FanOutView{}, &historyv1.ItemList{States: map[int32]string{}}, &historyv1.InstanceArtifacts{}
		plain, err = c.collect(ctx, req, view, list, left)
		return err
	})
	if away, ok := errors.AsType[awayError](err); ok {
		return nil, away
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	switch {
	case err != nil:
		view.Error, list.Items, list.Error = err.Error(), nil, err.Error()
	case plain && len(left.GetList()) == 0:
		return view, nil
	}
	if list.Artifacts, err = artifacts.PackInstances(left); err != nil {
		return nil, err
	}
	view.Outputs, err = c.keepList(ctx, names.Home(req.GetRunId(), req.GetChain()), list, req.GetStored())
	return view, err
}

// collect fills the list and the artifacts, and counts the instances. It reports whether all instances completed without output.
func (c *Control) collect(ctx context.Context, req *historyv1.CollectRequest, view *historyv1.FanOutView, list *historyv1.ItemList, left *historyv1.InstanceArtifacts) (plain bool, err error) {
	if len(req.GetPartitions()) > 0 {
		return c.collectParts(ctx, req, view, list, left)
	}
	for i, item := range req.GetItems() {
		for _, a := range item.GetArtifacts() {
			left.List = append(left.List, &historyv1.InstanceArtifact{Position: int32(i), Artifact: a})
		}
		if item.GetState() != v1.TaskCompleted {
			list.States[int32(i)] = item.GetState()
		}
	}
	s := collection{control: c, task: req.GetTask(), values: make([]*structpb.Value, len(req.GetItems())), room: maxCollectedBytes, patient: time.Now().Add(store.Arrival)}
	view.Count, plain = int32(len(req.GetItems())), len(list.States) == 0
	records := map[string][]int{} // positions, by key of the record
	for i, item := range req.GetItems() {
		switch {
		case !v1.IsTaskSuccess(item.GetState()):
			view.Failed++
			err = s.put(i, structpb.NewNullValue())
		case item.GetRecord() != "":
			view.Completed++
			key, _, _ := strings.Cut(item.GetRecord(), "#") // all results of a batch are in one record
			records[key] = append(records[key], i)
		default:
			view.Completed++
			plain = plain && len(item.GetOutput().GetFields()) == 0
			err = s.put(i, outputValue(item.GetOutput()))
		}
		if err != nil {
			return false, err
		}
	}
	if err := s.read(ctx, req, records); err != nil {
		return false, err
	}
	for _, positions := range records {
		plain = plain && !slices.ContainsFunc(positions, func(i int) bool { return len(s.values[i].GetStructValue().GetFields()) > 0 })
	}
	list.Items = s.values
	return plain, nil
}

// collection builds the list. Its put is safe for concurrent use.
type collection struct {
	control *Control
	task    string
	patient time.Time // deadline for missing records

	mu     sync.Mutex
	values []*structpb.Value
	room   int
}

// put sets the output at a position.
func (s *collection) put(i int, output *structpb.Value) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.room -= proto.Size(output); s.room < 0 {
		return tooLarge(s.task)
	}
	s.values[i] = output
	return nil
}

// outputValue returns the output of a completed instance, which is an empty object if it left none.
func outputValue(output *structpb.Struct) *structpb.Value {
	if output == nil {
		output = &structpb.Struct{}
	}
	return structpb.NewStructValue(output)
}

func tooLarge(task string) error {
	return fmt.Errorf("the outputs of the instances of %s are larger than %d MiB together", task, maxCollectedBytes>>20)
}

// read adds the outputs from records, and reads several records in parallel.
func (s *collection) read(ctx context.Context, req *historyv1.CollectRequest, records map[string][]int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	keys := make(chan string)
	var readers sync.WaitGroup
	for range min(collectReads, len(records)) {
		readers.Go(func() {
			for key := range keys {
				if err := s.readRecord(ctx, req, key, records[key]); err != nil {
					cancel(err)
				}
			}
		})
	}
	for key := range records {
		if ctx.Err() == nil {
			keys <- key
		}
	}
	close(keys)
	readers.Wait()
	return context.Cause(ctx)
}

// readRecord adds the outputs of the record of an instance or of a batch.
func (s *collection) readRecord(ctx context.Context, req *historyv1.CollectRequest, key string, positions []int) error {
	var record historyv1.ExecuteResponse
	if err := s.control.Store.AwaitMessage(ctx, key, &record, time.Until(s.patient)); err != nil {
		return storeError{fmt.Errorf("read the output of %s, which its node may keep in another store: %w", s.name(req, positions[0]), err)}
	}
	members := map[string]*structpb.Struct{}
	for _, m := range record.GetBatch() {
		members[store.MemberReference(key, m.GetIndex())] = m.GetResult().GetOutput()
	}
	for _, i := range positions {
		reference := req.GetItems()[i].GetRecord()
		output, ok := members[reference]
		switch {
		case reference == key:
			output = record.GetResult().GetOutput()
		case !ok:
			return storeError{fmt.Errorf("read the output of %s: %w", s.name(req, i), store.ErrNotFound)}
		}
		if err := s.put(i, outputValue(output)); err != nil {
			return err
		}
	}
	return nil
}

// name returns the name of the instance at a position in the list.
func (s *collection) name(req *historyv1.CollectRequest, position int) string {
	return fmt.Sprintf("%s[%d]", s.task, int(req.GetFrom())+position)
}

// collectParts combines the lists of parts into one. If a part has no outputs to give, the states and artifacts of all parts are
// listed regardless.
func (c *Control) collectParts(ctx context.Context, req *historyv1.CollectRequest, view *historyv1.FanOutView, list *historyv1.ItemList, left *historyv1.InstanceArtifacts) (plain bool, err error) {
	plain = true
	room := maxCollectedBytes
	var refused error
	for _, part := range req.GetPartitions() {
		first := view.GetCount()
		view.Count += part.GetCount()
		outputs := condition.EmptyOutputs(int(part.GetCount()))
		switch {
		case part.GetState() != "":
			plain, outputs = false, &structpb.ListValue{}
			for k := range part.GetCount() {
				list.States[first+k] = part.GetState()
				outputs.Values = append(outputs.Values, structpb.NewNullValue())
			}
		case part.GetKey() != "":
			plain = false
			stored, err := c.Store.AwaitItems(ctx, part.GetKey(), store.Arrival)
			if err != nil {
				return false, storeError{fmt.Errorf("read the outputs of %s from instance %d on: %w", req.GetTask(), req.GetFrom()+first, err)}
			}
			for k, state := range stored.GetStates() {
				list.States[first+k] = state
			}
			some, err := artifacts.UnpackInstances(stored.GetArtifacts())
			if err != nil {
				return false, fmt.Errorf("read the artifacts of %s from instance %d on: %w", req.GetTask(), req.GetFrom()+first, err)
			}
			for _, one := range some.GetList() {
				one.Position += first
				left.List = append(left.List, one)
			}
			if stored.GetError() != "" {
				refused = cmp.Or(refused, errors.New(stored.GetError()))
				continue
			}
			outputs = results.ListOf(stored)
		}
		if room -= proto.Size(outputs); room < 0 {
			refused = cmp.Or(refused, tooLarge(req.GetTask()))
		}
		if refused == nil {
			list.Items = append(list.Items, outputs.GetValues()...)
		}
	}
	return plain, refused
}
