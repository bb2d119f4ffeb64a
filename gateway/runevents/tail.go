package runevents

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// Tail reads the events of a run in the order in which the run learns of them, each once. Events of one workflow keep their
// order. A Tail does not sort by time, so a position determines which events have been read. It is not safe for concurrent
// use.
type Tail struct {
	reader *Reader
	at     Position
	// sources holds the sources of the current generation, by the first instance of their part; the run itself is "".
	sources map[string]*eventSource
	// over holds the parts that have ended and have been read completely.
	over map[string]bool
}

// Tail returns a tail that begins at a position.
func (r *Reader) Tail(at Position) *Tail {
	return &Tail{reader: r, at: at, sources: map[string]*eventSource{}, over: map[string]bool{}}
}

// Position returns the current position.
func (t *Tail) Position() Position { return t.at }

// Read calls take with each event that the run has learned of since the last Read, and with the position after it. It stops
// at the first error of take; the event then counts as unread.
func (t *Tail) Read(ctx context.Context, s Subject, take func(*v1.Event, Position) error) error {
	for {
		if err := t.readGeneration(ctx, s, take); err != nil {
			return err
		}
		if t.at.generation >= s.generation {
			return nil
		}
		t.at = GenerationStart(t.at.generation + 1)
		clear(t.sources)
		clear(t.over)
	}
}

// Validate returns InvalidArgument if the run has no event before the position. It reads all events up to there.
func (t *Tail) Validate(ctx context.Context, s Subject) error {
	if t.at.generation > s.generation+1 || t.at.generation > s.generation && t.at.run > 0 {
		return rpcerror.Invalid("run %s has no event of generation %d; its newest is %d", s.id, t.at.generation, s.generation)
	}
	if t.at.generation > s.generation {
		return nil
	}
	if err := t.openSources(ctx, s); err != nil {
		return err
	}
	missing := func(part string) error {
		return rpcerror.Invalid("run %s has no event %s; resume with an id that the stream has sent", s.id, names.EventID(t.at.generation, part, t.at.next(part)-1))
	}
	for part := range t.at.parts {
		if t.sources[part] == nil {
			return missing(part)
		}
	}
	for part, source := range t.sources {
		if t.at.next(part) == 0 {
			continue
		}
		if _, err := t.head(ctx, part, source); err != nil {
			return err
		}
		// The number of the last event is known once an event has been passed.
		if source.last < t.at.next(part)-1 {
			return missing(part)
		}
	}
	return nil
}

func (t *Tail) readGeneration(ctx context.Context, s Subject, take func(*v1.Event, Position) error) error {
	if t.at.generation > s.generation {
		return nil
	}
	if err := t.openSources(ctx, s); err != nil {
		return err
	}
	for _, part := range slices.SortedFunc(maps.Keys(t.sources), compareParts) {
		source := t.sources[part]
		source.reset()
		for {
			e, err := t.head(ctx, part, source)
			if err != nil {
				return err
			}
			if e == nil {
				break
			}
			e.Run = s.id
			after := t.at.After(e)
			if err := take(e, after); err != nil {
				return err
			}
			t.at = after
			source.advance(e)
		}
		source.held = nil
		if part != "" && !source.live {
			t.over[part] = true
			delete(t.sources, part)
		}
	}
	return nil
}

// head returns the first event of a source after the position, or nil at the end of the source.
func (t *Tail) head(ctx context.Context, part string, source *eventSource) (*v1.Event, error) {
	for {
		e, err := source.head(ctx, t.reader)
		if err != nil || e == nil || !t.at.IsPast(e) {
			return e, err
		}
		source.advance(e)
	}
}

// openSources adds the new sources of the generation and updates the others.
func (t *Tail) openSources(ctx context.Context, s Subject) error {
	parts, err := t.reader.partsOf(ctx, s, t.at.generation)
	if err != nil {
		return err
	}
	t.open("", s.source(t.at.generation, func(*v1.Event) bool { return true }))
	for _, p := range parts {
		if key := names.InstanceName(p.GetTask(), int(p.GetFrom())); p.GetGeneration() == t.at.generation && !t.over[key] {
			t.open(key, s.childSource(p, ""))
		}
	}
	return nil
}

// open adds a source, or copies live and silent to the existing source.
func (t *Tail) open(part string, source *eventSource) {
	if known := t.sources[part]; known != nil {
		known.live, known.silent = source.live, source.silent
		return
	}
	source.last = -1
	t.sources[part] = source
}

// compareParts orders the run itself before its parts, and the parts of a task by number.
func compareParts(a, b string) int {
	of, first, _ := names.ParseInstanceName(a)
	other, second, _ := names.ParseInstanceName(b)
	return cmp.Or(strings.Compare(of, other), cmp.Compare(first, second))
}

// Starts returns the starts of running attempts that only heartbeats report so far.
func Starts(v *runview.View) []*v1.Event {
	events := startedEvents(v, "", nil)
	for _, e := range events {
		e.Run = v.Run.GetId()
	}
	return events
}
