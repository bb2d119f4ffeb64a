package follow

import (
	"maps"
	"slices"
	"time"

	"switchyard/cli/tui"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

// Limits for the lines about the instances of one task.
const (
	// maxEnds is the number of first ended instances that get a line each, whatever their result.
	maxEnds = 20
	// maxFailedEnds is the number of failures after those that also get a line each.
	maxFailedEnds = 20
	// tallyEvery is the shortest interval between two lines of the tally.
	tallyEvery = time.Second
)

// FanOutRule describes these limits in the help of commands.
const FanOutRule = `If standard error is not a terminal, each change of a task is printed as a line. Of a
fanned-out task, the first 20 instances that end get a line each, and so do the next 20
that fail; the others are summed up in at most one line a second, such as
"each  running  37/100 done, 4 running, 1 failed".`

// fanOutProgress limits the lines about fanned-out tasks. Its zero value is ready for use.
type fanOutProgress struct {
	fanOuts map[string]*fanOut
}

// fanOut is a fanned-out task.
type fanOut struct {
	ends, failures int
	// tally counts the instances by state. It is nil once it has been reported.
	tally *tui.Change
	// lastText is the tally reported last, and reportedAt the time of that report.
	lastText   string
	reportedAt time.Time
}

func (p *fanOutProgress) of(task string) *fanOut {
	f := p.fanOuts[task]
	if f == nil {
		if p.fanOuts == nil {
			p.fanOuts = map[string]*fanOut{}
		}
		f = &fanOut{}
		p.fanOuts[task] = f
	}
	return f
}

// shouldReport reports whether a change gets a line immediately.
func (p *fanOutProgress) shouldReport(c tui.Change) bool {
	switch {
	case c.Of != "":
		if !v1.HasTaskEnded(c.Task) {
			return false
		}
		f := p.of(c.Of)
		if f.ends++; f.ends <= maxEnds {
			return true
		}
		if v1.HasTaskFailed(c.Task) && f.failures < maxFailedEnds {
			f.failures++
			return true
		}
		return false
	case c.TallyOnly:
		if c.Task.GetCount() > maxEnds { // with fewer instances, each end gets a line
			p.of(c.Name).tally = &c
		}
		return false
	}
	if f := p.fanOuts[c.Name]; f != nil {
		f.tally = nil // the task's line includes the tally
	}
	return true
}

// due returns the tallies that are to be printed now.
func (p *fanOutProgress) due(now time.Time) []tui.Change {
	var due []tui.Change
	for _, name := range slices.Sorted(maps.Keys(p.fanOuts)) {
		f := p.fanOuts[name]
		if f.tally == nil || now.Sub(f.reportedAt) < tallyEvery {
			continue
		}
		// A tally counts instances that wait for a node and instances that wait for a slot together.
		if text := words.Tally(f.tally.Task); text != f.lastText {
			due = append(due, *f.tally)
			f.lastText, f.reportedAt = text, now
		}
		f.tally = nil
	}
	return due
}
