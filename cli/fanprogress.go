package cli

import (
	"maps"
	"slices"
	"time"

	"switchyard/cli/tui"
	v1 "switchyard/proto/switchyard/v1"
)

// Bounds of the lines about the instances of one task.
const (
	// maxEnds is how many ends of instances get a line each, whatever they are.
	maxEnds = 20
	// maxFailedEnds is how many failures after these do.
	maxFailedEnds = 20
	// tallyEvery is how often, at most, the tally gets a line.
	tallyEvery = time.Second
)

// fanRule tells people of these bounds.
const fanRule = `Where standard error is no terminal, each change of a task gets a line. Of a
fanned-out task, the first 20 instances that end get one each; after that 20 that
failed do, and what becomes of all others is told in one line each second at most,
such as "each  running  37/100 done, 4 running, 1 failed".`

// fanProgress keeps the lines about fanned-out tasks few. Its zero value is ready.
type fanProgress struct {
	fans map[string]*fan
}

// fan is a task that has fanned out.
type fan struct {
	ends, failures int
	// tally is what has not been told of how far its instances are.
	tally *tui.Change
	// said is the tally that was told last, and told when that was.
	said string
	told time.Time
}

func (p *fanProgress) of(task string) *fan {
	f := p.fans[task]
	if f == nil {
		if p.fans == nil {
			p.fans = map[string]*fan{}
		}
		f = &fan{}
		p.fans[task] = f
	}
	return f
}

// tell says whether a change is to get a line now.
func (p *fanProgress) tell(c tui.Change) bool {
	switch {
	case c.Of != "":
		if !v1.IsTaskTerminal(c.Task.GetState()) {
			return false
		}
		f := p.of(c.Of)
		if f.ends++; f.ends <= maxEnds {
			return true
		}
		if v1.IsTaskFailure(c.Task.GetState()) && f.failures < maxFailedEnds {
			f.failures++
			return true
		}
		return false
	case c.TallyOnly:
		if c.Task.GetCount() > maxEnds { // else its ends tell it
			p.of(c.Name).tally = &c
		}
		return false
	}
	if f := p.fans[c.Name]; f != nil {
		f.tally = nil // its line tells that, too
	}
	return true
}

// due are the tallies that are to get a line now.
func (p *fanProgress) due(now time.Time) []tui.Change {
	var due []tui.Change
	for _, name := range slices.Sorted(maps.Keys(p.fans)) {
		f := p.fans[name]
		if f.tally == nil || now.Sub(f.told) < tallyEvery {
			continue
		}
		// What waits for a node and what waits for its turn are the same to it.
		if text := tui.Tally(f.tally.Task); text != f.said {
			due = append(due, *f.tally)
			f.said, f.told = text, now
		}
		f.tally = nil
	}
	return due
}
