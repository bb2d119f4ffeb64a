package sse

import (
	"context"
	"time"

	"switchyard/gateway/auth"
	"switchyard/gateway/runevents"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

// readTimeout bounds what one look at a run takes, so that a run that does not answer holds up few others.
const readTimeout = 3 * time.Second

// runTail reads the events of one run from a time on.
type runTail struct {
	tail  *runevents.Tail
	since *runevents.Since
}

func newRunTail(events *runevents.Reader, from time.Time) *runTail {
	return &runTail{tail: events.Tail(runevents.Position{}), since: runevents.NewSince(from)}
}

// read calls take with the events of a run that are new.
func (t *runTail) read(ctx context.Context, reader *runview.Reader, id string, take func(*v1.Event) error) error {
	v, err := reader.Read(ctx, id)
	if err != nil {
		return err
	}
	return t.tail.Read(ctx, runevents.SubjectOf(v), func(e *v1.Event, _ runevents.Position) error {
		for _, selected := range t.since.Select(e) {
			if err := take(selected); err != nil {
				return err
			}
		}
		return nil
	})
}

// recentRuns reads the events of all runs from a time on, once.
type recentRuns struct {
	index  *runindex.Index
	reader *runview.Reader
	events *runevents.Reader
}

// read calls take with the events of the runs that the caller reaches, run by run, the oldest run first. A run that cannot be read is reported to skip.
func (r *recentRuns) read(ctx context.Context, from time.Time, take func(*v1.Event) error, skip func(run string, err error)) error {
	found, err := r.index.ActiveSince(ctx, from, maxRuns)
	if err != nil {
		return err
	}
	caller := auth.From(ctx)
	for k := len(found) - 1; k >= 0; k-- {
		if !caller.Reaches(runindex.OwnerOf(found[k])) {
			continue
		}
		id := found[k].GetExecution().GetWorkflowId()
		var broken error // of take
		look, cancel := context.WithTimeout(ctx, readTimeout)
		err := newRunTail(r.events, from).read(look, r.reader, id, func(e *v1.Event) error {
			broken = take(e)
			return broken
		})
		cancel()
		switch {
		case broken != nil:
			return broken
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			skip(id, err)
		}
	}
	return nil
}
