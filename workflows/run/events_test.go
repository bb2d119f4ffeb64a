package run_test

import (
	"errors"
	"strings"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/names"
)

// eventsOf queries an open run for the events that it has not stored.
func eventsOf(h *workertest.Handle) *historyv1.EventsResponse {
	h.T.Helper()
	var res historyv1.EventsResponse
	h.Query(h.ID, names.EventsQuery, &historyv1.EventsRequest{}, &res)
	return &res
}

// lifecycleOf returns the events of a task over all generations as a text.
func lifecycleOf(h *workertest.Handle, task string, generations int32) string {
	h.T.Helper()
	var words []string
	for g := range generations {
		for _, e := range storedEvents(h, g) {
			if e.GetTask() == task {
				words = append(words, e.GetEvent())
			}
		}
	}
	return strings.Join(words, " ")
}

// storedEvents returns the stored events of a generation.
func storedEvents(h *workertest.Handle, generation int32) []*v1.Event {
	h.T.Helper()
	var events []*v1.Event
	for n := int32(0); ; n++ {
		var part historyv1.EventSlice
		err := h.Store.GetMessage(h.T.Context(), storekey.Events(h.Home(), generation, n), &part)
		if errors.Is(err, store.ErrNotFound) {
			return events
		}
		if err != nil {
			h.T.Fatal(err)
		}
		events = append(events, part.GetEvents()...)
	}
}
