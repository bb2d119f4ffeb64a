package results

import (
	"context"
	"fmt"
	"time"

	"switchyard/activities/store"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// ResolveView returns the view of an upstream task with the parts that the store holds: its result,
// or the outputs of its instances. It waits up to patience for a value that has not been stored
// yet, and then returns store.ErrNotFound.
func ResolveView(ctx context.Context, s *store.Store, task string, view *historyv1.ParentView, patience time.Duration) (*historyv1.ParentView, error) {
	record, outputs := view.GetRecord(), view.GetFanOut().GetOutputs().GetKey()
	if record == "" && outputs == "" {
		return view, nil
	}
	whole := &historyv1.ParentView{State: view.GetState(), Result: view.GetResult(), FanOut: view.GetFanOut()}
	if record != "" {
		res, err := s.AwaitResult(ctx, record, patience)
		if err != nil {
			return nil, fmt.Errorf("read the result of %s, which its node may keep in another store: %w", task, err)
		}
		whole.Result = res.GetResult()
	}
	if outputs != "" {
		list, err := s.AwaitItems(ctx, outputs, patience)
		if err != nil {
			return nil, fmt.Errorf("read the outputs of the instances of %s: %w", task, err)
		}
		whole.FanOut = &historyv1.FanOutView{
			Count: view.GetFanOut().GetCount(), Completed: view.GetFanOut().GetCompleted(), Failed: view.GetFanOut().GetFailed(),
			Error: list.GetError(),
		}
		if list.GetError() == "" {
			whole.FanOut.Outputs = &historyv1.Items{List: ListOf(list)}
		}
	}
	return whole, nil
}
