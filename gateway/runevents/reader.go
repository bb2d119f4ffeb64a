package runevents

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// Reader reads the events of runs. It is safe for concurrent use.
type Reader struct {
	runs  *runview.Reader
	index *runindex.Index
	store *store.Store
	log   *slog.Logger
}

// New returns a reader of the events of runs.
func New(reader *runview.Reader, index *runindex.Index, kept *store.Store, log *slog.Logger) *Reader {
	return &Reader{runs: reader, index: index, store: kept, log: log}
}

// List returns a page of the events of one run or of all runs.
func (r *Reader) List(ctx context.Context, req *v1.ListRunEventsRequest) (*v1.ListRunEventsResponse, error) {
	pages, err := paging.ListOf(req)
	if err != nil {
		return nil, err
	}
	filter, err := NewFilter(req)
	if err != nil {
		return nil, err
	}
	page := &eventPage{filter: filter, limit: cmp.Or(int(req.GetPageSize()), defaultPage)}
	if req.GetId() == "" {
		return r.listOfRuns(ctx, pages, page)
	}
	return r.listOfRun(ctx, pages, page)
}

// LastDetail returns the detail of a task's newest event of a kind, or "" if there is none.
func (r *Reader) LastDetail(ctx context.Context, v *runview.View, task, kind string) (string, error) {
	detail := ""
	filter := &Filter{ListRunEventsRequest: &v1.ListRunEventsRequest{Task: task, Event: kind}}
	for at := (eventPlace{}); ; {
		page := &eventPage{filter: filter, limit: defaultPage}
		next, err := r.readRun(ctx, page, v, at)
		if err != nil {
			return "", err
		}
		for _, e := range page.items {
			detail = e.GetDetail()
		}
		if next == nil {
			return detail, nil
		}
		at = *next
	}
}

// readPart reads the current part of a source into held, or sets held to nil if there is no such part.
func (r *Reader) readPart(ctx context.Context, s *eventSource) error {
	// A part that was not stored at the last read probably still is not.
	asksFirst := s.live && s.unstored
	s.base, s.unstored = 0, false
	for ; ; asksFirst = false {
		if !asksFirst {
			var stored historyv1.EventSlice
			err := r.store.GetMessage(ctx, storekey.Events(s.home, s.generation, s.part), &stored)
			if err == nil {
				s.held = append([]*v1.Event{}, stored.GetEvents()...)
				return nil
			}
			if !errors.Is(err, store.ErrNotFound) {
				return err
			}
			if !s.live {
				return nil // a workflow that ends by itself stores all its events
			}
		}
		unstored, parts, err := r.runs.UnstoredEvents(ctx, s.id, s.offset)
		switch {
		case err != nil && (s.silent || rpcerror.IsPermanent(err)):
			r.log.Debug("cannot read the events of a workflow", "workflow", s.id, "error", err)
			return nil
		case err != nil:
			return err
		case parts == s.part:
			s.held, s.base, s.unstored = unstored, s.offset, true
			return nil
		case parts < s.part:
			return nil
		case asksFirst:
			continue
		}
		// The part has been stored meanwhile, unless it was lost.
		if _, err := r.store.Get(ctx, storekey.Events(s.home, s.generation, s.part)); err != nil {
			return err
		}
	}
}
