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

// readTimeout bounds one read of a run, so that an unresponsive run holds up few others.
const readTimeout = 3 * time.Second

// runTail reads the events of one run since a given time.
type runTail struct {
	tail  *runevents.Tail
	since *runevents.Since
}

func newRunTail(events *runevents.Reader, from time.Time) *runTail {
	return &runTail{tail: events.Tail(runevents.Position{}), since: runevents.NewSince(from)}
}

// read calls take with each new event of a run.
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

// recentRuns reads the events of all runs since a given time.
type recentRuns struct {
	index  *runindex.Index
	reader *runview.Reader
	events *runevents.Reader
}

// read calls take with the events of the runs that the caller may see, run by run, the oldest run first. It calls skip for a run
// that cannot be read.
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
		var broken error // error of take
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
