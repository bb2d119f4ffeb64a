package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"switchyard/cli/tui"
	v1 "switchyard/proto/switchyard/v1"
)

// progress shows a run that goes on. Its methods are called one at a time.
type progress interface {
	// changed takes in what has happened since the call before.
	changed(b *tui.Board, changes []tui.Change) error
	// tick is called every frame.
	tick(b *tui.Board) error
	// ended is called once, last.
	ended(b *tui.Board) error
}

// newProgress shows a run on standard error: as a table that is drawn again and
// again on a terminal, as one line a change elsewhere.
func newProgress(sys *system) progress {
	if sys.stderrTerminal {
		return &liveProgress{sys: sys}
	}
	return &lineProgress{sys: sys, lines: tui.Lines{Style: sys.progressStyle()}}
}

// waitWorthTelling is how long a task has to wait for a node before the reason
// for that, or another one, gets a line. A wait without a reason, for a slot,
// gets none: a wide run has thousands.
const waitWorthTelling = time.Second

type lineProgress struct {
	sys     *system
	lines   tui.Lines
	told    bool
	waiting map[string]wait
	fans    fanProgress
}

// wait is a task that waits for a node and has not been told of.
type wait struct {
	change tui.Change
	since  time.Time
}

func (p *lineProgress) changed(b *tui.Board, changes []tui.Change) error {
	p.lines.Widen(b)
	if !p.told {
		p.told = true
		if err := p.say(p.lines.Note("run "+b.Run().GetId(), p.sys.now())); err != nil {
			return err
		}
	}
	for _, c := range changes {
		if !p.fans.tell(c) {
			continue
		}
		since := p.sys.now()
		if w, waited := p.waiting[c.Name]; waited {
			since = w.since
			delete(p.waiting, c.Name)
		}
		// An attempt that failed and is going to be repeated is news at once.
		if c.Task.GetState() == v1.TaskQueued && c.Task.GetScheduledAfter() == nil || c.Of == "" && tui.Waits(c.Task) {
			if c.Task.GetError() == "" {
				continue
			}
			if c.At.IsZero() {
				c.At = p.sys.now()
			}
			if p.waiting == nil {
				p.waiting = map[string]wait{}
			}
			p.waiting[c.Name] = wait{c, since}
			continue
		}
		if err := p.say(p.lines.Line(c, p.sys.now())); err != nil {
			return err
		}
	}
	return nil
}

func (p *lineProgress) say(line string) error {
	_, err := fmt.Fprintln(p.sys.screen, line)
	return err
}

func (p *lineProgress) tick(*tui.Board) error {
	now := p.sys.now()
	for _, name := range slices.Sorted(maps.Keys(p.waiting)) {
		w := p.waiting[name]
		if now.Sub(w.since) < waitWorthTelling {
			continue
		}
		delete(p.waiting, name)
		if err := p.say(p.lines.Line(w.change, now)); err != nil {
			return err
		}
	}
	for _, c := range p.fans.due(now) {
		if err := p.say(p.lines.Line(c, now)); err != nil {
			return err
		}
	}
	return nil
}

func (p *lineProgress) ended(*tui.Board) error { return nil }

// staleAfter is how old a picture may be: times in it go on.
const staleAfter = time.Second

type liveProgress struct {
	sys   *system
	dirty bool
	drawn time.Time
}

func (p *liveProgress) changed(b *tui.Board, _ []tui.Change) error {
	p.dirty = true
	if p.drawn.IsZero() {
		return p.draw(b)
	}
	return nil
}

func (p *liveProgress) tick(b *tui.Board) error {
	if !p.dirty && p.sys.now().Sub(p.drawn) < staleAfter {
		return nil
	}
	return p.draw(b)
}

func (p *liveProgress) draw(b *tui.Board) error {
	now := p.sys.now()
	p.dirty, p.drawn = false, now
	width, height := p.sys.screen.Size()
	return p.sys.screen.Draw(tui.View(b, now, width, height, p.sys.progressStyle()))
}

// ended leaves the last picture.
func (p *liveProgress) ended(b *tui.Board) error {
	return errors.Join(p.draw(b), p.sys.screen.Release())
}

// both shows a run in two ways.
type both struct{ first, second progress }

func (p both) changed(b *tui.Board, changes []tui.Change) error {
	return errors.Join(p.first.changed(b, changes), p.second.changed(b, changes))
}

func (p both) tick(b *tui.Board) error { return errors.Join(p.first.tick(b), p.second.tick(b)) }

func (p both) ended(b *tui.Board) error { return errors.Join(p.first.ended(b), p.second.ended(b)) }
