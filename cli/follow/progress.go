package follow

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"switchyard/cli/tui"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

// progress shows a run. Its methods are never called concurrently.
type progress interface {
	// changed shows the changes since the last call.
	changed(b *tui.Status, changes []tui.Change) error
	// tick is called every frame.
	tick(b *tui.Status) error
	// ended is called once, as the last call.
	ended(b *tui.Status) error
}

// newProgress returns a progress on standard error: a redrawn table on a terminal, else a line for each change.
func newProgress(terminal *Terminal) progress {
	if terminal.Redraws {
		return &liveProgress{terminal: terminal}
	}
	return &lineProgress{terminal: terminal, lines: tui.Lines{Style: terminal.Style}}
}

// minReportedWait is how long a task must wait for a node before the reason gets a line. A wait for a slot, which has
// no reason, gets none, because a wide run has thousands of them.
const minReportedWait = time.Second

type lineProgress struct {
	terminal *Terminal
	lines    tui.Lines
	reported bool
	runWait  string // why the open run waits, as reported
	waiting  map[string]wait
	fans     fanOutProgress
}

// wait is an unreported wait of a task for a node.
type wait struct {
	change tui.Change
	since  time.Time
}

func (p *lineProgress) changed(b *tui.Status, changes []tui.Change) error {
	p.lines.Widen(b)
	if !p.reported {
		p.reported = true
		if err := p.say(p.lines.Note("run "+b.Run().GetId(), p.terminal.Now())); err != nil {
			return err
		}
	}
	if why := b.Run().GetError(); why != p.runWait && !b.Ended() {
		p.runWait = why
		if why != "" {
			if err := p.say(p.lines.Note(words.OneLine(why), p.terminal.Now())); err != nil {
				return err
			}
		}
	}
	for _, c := range changes {
		if !p.fans.shouldReport(c) {
			continue
		}
		since := p.terminal.Now()
		if w, waited := p.waiting[c.Name]; waited {
			since = w.since
			delete(p.waiting, c.Name)
		}
		// A failed attempt that will be retried is reported at once.
		if c.Task.GetState() == v1.TaskQueued && c.Task.GetScheduledAfter() == nil || c.Of == "" && words.IsWaiting(c.Task) {
			if c.Task.GetError() == "" {
				continue
			}
			if c.At.IsZero() {
				c.At = p.terminal.Now()
			}
			if p.waiting == nil {
				p.waiting = map[string]wait{}
			}
			p.waiting[c.Name] = wait{c, since}
			continue
		}
		if err := p.say(p.lines.Line(c, p.terminal.Now())); err != nil {
			return err
		}
	}
	return nil
}

func (p *lineProgress) say(line string) error {
	_, err := fmt.Fprintln(p.terminal.Screen, line)
	return err
}

func (p *lineProgress) tick(*tui.Status) error {
	now := p.terminal.Now()
	for _, name := range slices.Sorted(maps.Keys(p.waiting)) {
		w := p.waiting[name]
		if now.Sub(w.since) < minReportedWait {
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

func (p *lineProgress) ended(*tui.Status) error { return nil }

// staleAfter is the age at which the table is redrawn without a change, so that its times advance.
const staleAfter = time.Second

type liveProgress struct {
	terminal *Terminal
	dirty    bool
	drawn    time.Time
}

func (p *liveProgress) changed(b *tui.Status, _ []tui.Change) error {
	p.dirty = true
	if p.drawn.IsZero() {
		return p.draw(b)
	}
	return nil
}

func (p *liveProgress) tick(b *tui.Status) error {
	if !p.dirty && p.terminal.Now().Sub(p.drawn) < staleAfter {
		return nil
	}
	return p.draw(b)
}

func (p *liveProgress) draw(b *tui.Status) error {
	now := p.terminal.Now()
	p.dirty, p.drawn = false, now
	width, height := p.terminal.Screen.Size()
	return p.terminal.Screen.Draw(tui.View(b, now, width, height, p.terminal.Style))
}

// ended leaves the final table on the screen.
func (p *liveProgress) ended(b *tui.Status) error {
	return errors.Join(p.draw(b), p.terminal.Screen.Release())
}

// both shows a run through two progresses.
type both struct{ first, second progress }

func (p both) changed(b *tui.Status, changes []tui.Change) error {
	return errors.Join(p.first.changed(b, changes), p.second.changed(b, changes))
}

func (p both) tick(b *tui.Status) error { return errors.Join(p.first.tick(b), p.second.tick(b)) }

func (p both) ended(b *tui.Status) error { return errors.Join(p.first.ended(b), p.second.ended(b)) }
