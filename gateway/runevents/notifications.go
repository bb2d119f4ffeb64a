package runevents

import (
	"context"
	"fmt"
	"slices"

	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// notifications returns the events about the notifications of a generation as a group of one part, or nil if there are none. The
// workflows that send notifications outlive the run, and store these events one by one.
func (r *Reader) notifications(ctx context.Context, s Subject, at eventPlace, wanted func(*v1.Event) bool) (*eventGroup, error) {
	var events []*v1.Event
	_, err := r.store.ReadEach(ctx, storekey.NotifiedPrefix(s.home, at.Generation), func(key string) error {
		var slice historyv1.EventSlice
		err := r.store.GetMessage(ctx, key, &slice)
		events = append(events, slice.GetEvents()...)
		return err
	}, func(string, error) string { return "" })
	if err != nil {
		return nil, fmt.Errorf("read what became of notifications: %w", err)
	}
	if len(events) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(events, func(a, b *v1.Event) int { return a.GetAt().AsTime().Compare(b.GetAt().AsTime()) })
	return &eventGroup{
		next: at.Next[""], parts: []*historyv1.PartitionReport{{}},
		sources: func(*historyv1.PartitionReport) *eventSource {
			// There is no part after the first one.
			return &eventSource{id: s.id, home: s.home + "/notified", generation: at.Generation, wanted: wanted, held: events}
		},
	}, nil
}
