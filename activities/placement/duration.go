package placement

import (
	"strings"
	"time"
)

// kind identifies the attempts that take about as long as one another: those of a task, with all its
// instances, in all runs of an owner's workflow.
type kind struct{ owner, workflow, task string }

func (r *request) kind() kind {
	return kind{owner: r.run.Owner, workflow: r.run.Workflow, task: baseName(r.task)}
}

// baseName returns the name of the task of an instance.
func baseName(task string) string {
	base, _, _ := strings.Cut(task, "[")
	return base
}

const (
	// mostDurations is the number of kinds in each of the two generations of durations.
	mostDurations = 10_000
	// durationDecay is the part of the difference by which a shorter attempt lowers a typical duration.
	durationDecay = 0.1
)

// durations estimates how long attempts take, from those that have ended: the longest of the recent
// ones, because an attempt that takes longer than expected delays whoever waits for its room. The
// system's own estimates serve backfilling better than the limits that users give, which are mostly
// far too long (Tsafrir, Etsion and Feitelson, IEEE TPDS 18(6), 2007).
type durations struct {
	recent, older map[kind]time.Duration
}

func newDurations() *durations { return &durations{recent: map[kind]time.Duration{}} }

// of returns the typical duration of a kind. ok is false if none has been measured.
func (ds *durations) of(k kind) (d time.Duration, ok bool) {
	if d, ok = ds.recent[k]; !ok {
		d, ok = ds.older[k]
	}
	return d, ok
}

// measure records the duration of an attempt.
func (ds *durations) measure(k kind, took time.Duration) {
	if typical, ok := ds.of(k); ok && took < typical {
		took = typical + time.Duration(durationDecay*float64(took-typical))
	}
	if len(ds.recent) >= mostDurations {
		ds.recent, ds.older = map[kind]time.Duration{}, ds.recent
	}
	ds.recent[k] = took
}

// endOf returns when a claim's attempt is expected to end. isKnown is false if only its age says how long it takes: what
// has run for a while is expected to run for as long again.
func (ds *durations) endOf(c *claim, now time.Time) (at time.Time, isKnown bool) {
	if c.assignedAt.IsZero() {
		return now, false
	}
	for _, d := range []func() (time.Duration, bool){
		func() (time.Duration, bool) { return ds.expect(c.kind, c.limit) },
		func() (time.Duration, bool) { return c.limit, c.limit > 0 },
	} {
		if took, ok := d(); ok && c.assignedAt.Add(took).After(now) {
			return c.assignedAt.Add(took), true
		}
	}
	return now.Add(now.Sub(c.assignedAt)), false
}

// expect returns how long an attempt will take: as long as is typical of its kind, but no longer than
// its time limit. ok is false if neither is known.
func (ds *durations) expect(k kind, limit time.Duration) (d time.Duration, ok bool) {
	d, ok = ds.of(k)
	if limit > 0 && (!ok || limit < d) {
		return limit, true
	}
	return d, ok
}
