package runevents

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/runview"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// eventPlace is a position in the events of a run: a generation, and within it the position in the events of the run itself
// and of each child.
type eventPlace struct {
	Generation int32        `json:"g"`
	Part       int32        `json:"p,omitempty"`
	Offset     int          `json:"o,omitempty"`
	Children   []childPlace `json:"c,omitempty"`
	// Next is the number of children that have been opened, by task.
	Next map[string]int `json:"n,omitempty"`
}

// childPlace is the position in the events of a child whose events have not all been returned.
type childPlace struct {
	Task   string `json:"t"`
	From   int32  `json:"f"`
	Part   int32  `json:"p,omitempty"`
	Offset int    `json:"o,omitempty"`
}

func (p eventPlace) isValid() bool {
	ok := p.Generation >= 0 && p.Part >= 0 && p.Offset >= 0
	for _, c := range p.Children {
		ok = ok && c.Part >= 0 && c.Offset >= 0
	}
	for _, n := range p.Next {
		ok = ok && n >= 0
	}
	return ok
}

// eventMerge merges the events of one generation of a run with those of the children that carry the parts of its large
// fan-outs, by time. The children of a task start one after the other, so the merge keeps only those children open that are
// partly read, plus one: memory holds one part of each.
type eventMerge struct {
	run    *eventSource
	groups []*eventGroup // by task
}

// eventGroup holds the children of one task.
type eventGroup struct {
	task    string
	parts   []*historyv1.PartitionReport // in the order of their start
	next    int                          // number of parts that have been opened
	open    []*openChild
	sources func(*historyv1.PartitionReport) *eventSource
}

type openChild struct {
	*eventSource
	from int32
}

// merge returns a merge of the events of a run that begins at a place.
func (r *Reader) merge(ctx context.Context, v *runview.View, task string, at eventPlace) (*eventMerge, error) {
	s := SubjectOf(v)
	m := &eventMerge{run: s.source(at.Generation, func(e *v1.Event) bool { return task == "" || concerns(e, task) })}
	m.run.part, m.run.offset = at.Part, at.Offset
	parts, err := r.partsOf(ctx, s, at.Generation)
	if err != nil {
		return nil, err
	}
	for _, p := range wantedParts(parts, at.Generation, task) {
		k := slices.IndexFunc(m.groups, func(o *eventGroup) bool { return o.task == p.GetTask() })
		if k < 0 {
			k = len(m.groups)
			m.groups = append(m.groups, &eventGroup{
				task: p.GetTask(), next: at.Next[p.GetTask()],
				sources: func(p *historyv1.PartitionReport) *eventSource { return s.childSource(p, task) },
			})
		}
		m.groups[k].parts = append(m.groups[k].parts, p)
	}
	told, err := r.notifications(ctx, s, at, func(e *v1.Event) bool { return task == "" || concerns(e, task) })
	if err != nil {
		return nil, err
	}
	if told != nil {
		m.groups = append(m.groups, told)
	}
	for _, group := range m.groups {
		for k, p := range group.parts {
			for _, c := range at.Children {
				if k < group.next && c.Task == p.GetTask() && c.From == p.GetFrom() {
					source := group.sources(p)
					source.part, source.offset = c.Part, c.Offset
					group.open = append(group.open, &openChild{source, p.GetFrom()})
				}
			}
		}
	}
	return m, nil
}

// wantedParts returns the parts of a generation that may have events of a task or instance, or of any task if task is "",
// by task and number.
func wantedParts(parts []*historyv1.PartitionReport, generation int32, task string) []*historyv1.PartitionReport {
	of, index, instance := names.ParseInstanceName(task)
	var found []*historyv1.PartitionReport
	for _, p := range parts {
		if p.GetGeneration() != generation {
			continue // the part was reused, and its events belong to its own generation
		}
		switch {
		case task == "", p.GetTask() == task:
			found = append(found, p)
		case instance && p.GetTask() == of && int(p.GetFrom()) <= index:
			found = append(slices.DeleteFunc(found, func(o *historyv1.PartitionReport) bool { return o.GetFrom() < p.GetFrom() }), p)
		}
	}
	return found
}

// next returns the oldest event of all sources and its source, or nil at the end.
func (m *eventMerge) next(ctx context.Context, r *Reader) (first *eventSource, event *v1.Event, err error) {
	consider := func(s *eventSource) error {
		head, err := s.head(ctx, r)
		if err == nil && head != nil && (first == nil || s.at(head).Before(first.at(event))) {
			first, event = s, head
		}
		return err
	}
	if err := consider(m.run); err != nil {
		return nil, nil, err
	}
	for _, group := range m.groups {
		for group.next < len(group.parts) && (len(group.open) == 0 || group.open[len(group.open)-1].hasBegun()) {
			p := group.parts[group.next]
			group.open = append(group.open, &openChild{group.sources(p), p.GetFrom()})
			group.next++
			// Skip a child without wanted events immediately.
			if _, err := group.open[len(group.open)-1].head(ctx, r); err != nil {
				return nil, nil, err
			}
		}
		for _, c := range group.open {
			if err := consider(c.eventSource); err != nil {
				return nil, nil, err
			}
		}
		group.open = slices.DeleteFunc(group.open, func(c *openChild) bool { return c.done })
	}
	return first, event, nil
}

// place returns the start of the next page.
func (m *eventMerge) place() eventPlace {
	at := eventPlace{Generation: m.run.generation, Part: m.run.part, Offset: m.run.offset, Next: map[string]int{}}
	for _, group := range m.groups {
		at.Next[group.task] = group.next
		for _, c := range group.open {
			at.Children = append(at.Children, childPlace{Task: group.task, From: c.from, Part: c.part, Offset: c.offset})
		}
	}
	return at
}

// partsOf returns the parts of the large fan-outs of a generation of a run, or nil if they are not known.
func (r *Reader) partsOf(ctx context.Context, s Subject, generation int32) ([]*historyv1.PartitionReport, error) {
	current := generation == s.generation
	if current && !s.partitioned {
		return nil, nil
	}
	var status historyv1.StatusResponse
	if !current || s.ended {
		err := r.store.GetMessage(ctx, storekey.Status(s.home, generation), &status)
		if err == nil || !errors.Is(err, store.ErrNotFound) {
			return status.GetPartitions(), err
		}
		if !current {
			return nil, nil
		}
	}
	if err := r.runs.Query(ctx, s.id, names.StatusQuery, &historyv1.StatusRequest{MaxBytes: 1}, &status); err != nil {
		return nil, fmt.Errorf("query the children: %w", err)
	}
	return status.GetPartitions(), nil
}
