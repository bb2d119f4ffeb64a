package runview

import (
	"context"
	"fmt"
	"math"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// UnstoredEvents queries the workflow of a run for the events that it has not stored, from offset on, and for the number
// of parts that it has stored before them.
func (r *Reader) UnstoredEvents(ctx context.Context, id string, offset int) (events []*v1.Event, parts int32, err error) {
	for {
		answer, err := r.queryEvents(ctx, id, offset+len(events))
		if err != nil {
			return nil, 0, fmt.Errorf("query the workflow: %w", err)
		}
		if len(events) > 0 && answer.GetSlices() != parts {
			events = nil // the events read so far have been stored meanwhile
			continue
		}
		events, parts = append(events, answer.GetEvents()...), answer.GetSlices()
		if !answer.GetMore() || len(answer.GetEvents()) == 0 {
			return append([]*v1.Event{}, events...), parts, nil
		}
	}
}

func (r *Reader) queryEvents(ctx context.Context, id string, offset int) (*historyv1.EventsResponse, error) {
	answer := &historyv1.EventsResponse{}
	return answer, r.Query(ctx, id, names.EventsQuery, &historyv1.EventsRequest{Offset: int32(min(offset, math.MaxInt32))}, answer)
}
