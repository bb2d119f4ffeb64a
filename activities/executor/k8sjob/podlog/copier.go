package podlog

import (
	"bytes"
	"math"
	"time"
)

const (
	// markBytes and markInterval are the output and the time between two marks.
	markBytes    = 64 << 10
	markInterval = time.Second
	// maxTimeBytes is the length of the longest timestamp of a line, with a zone.
	maxTimeBytes = len("2006-01-02T15:04:05.000000000+00:00")
)

// copier assembles a log from streams that overlap and may be cut anywhere. Each stream begins at or before the end of
// the copied part.
type copier struct {
	write func(p []byte) error
	mark  func(position string)

	// at is the line that is being copied. copied is how much of it was copied, or everything.
	at     position
	copied int64
	// unmarked is how much was written since the latest mark; markedAt is the time of that mark.
	unmarked int64
	markedAt time.Time

	// phase is the phase of the current stream. counted is how many lines of the position it has delivered, and toSkip
	// how much of the position's line is still to be skipped.
	phase   phase
	counted int64
	toSkip  int64
	// head is the start of a line as long as it may be a timestamp. inLine reports whether the text of the line has
	// begun.
	head   []byte
	inLine bool
	// out is pending output; hasNew reports whether the current stream delivered anything new.
	out    []byte
	hasNew bool
	now    time.Time
}

// everything is the copied length of a line that an earlier copy has finished.
const everything = math.MaxInt64

// newCopier returns a copier that continues after the line of a position.
func newCopier(o Options, at position) copier {
	c := copier{write: o.Write, mark: o.Mark, at: at}
	if at.lines > 0 {
		c.copied = everything
	}
	return c
}

type phase int

const (
	// skipping means that the input precedes the lines of the position.
	skipping phase = iota
	// counting means that the input is one of these lines.
	counting
	// inNewest means that the input is the newest line of the position.
	inNewest
	// copying means that the input is new.
	copying
)

// begin prepares for another stream of the log, which begins at at.since or earlier.
func (c *copier) begin() {
	c.phase, c.counted, c.toSkip = skipping, 0, c.copied
	if c.at.lines == 0 {
		c.phase = inNewest // text before the first line
	}
	c.head, c.inLine, c.hasNew = c.head[:0], false, false
}

// hasPassedPosition reports whether the stream has delivered everything that was copied before.
func (c *copier) hasPassedPosition() bool {
	if c.phase == inNewest && c.copied == everything {
		return !c.inLine
	}
	return c.phase == copying || c.phase == inNewest && c.toSkip == 0
}

// add handles the next piece of the stream. It writes what is new, except for the start of a line that may be a
// timestamp.
func (c *copier) add(p []byte, now time.Time) error {
	c.now = now
	for len(p) > 0 {
		if !c.inLine {
			n, err := c.addHead(p)
			if err != nil {
				return err
			}
			p = p[n:]
			continue
		}
		n := bytes.IndexByte(p, '\n') + 1
		if n == 0 {
			n = len(p)
		} else {
			c.inLine = false
		}
		c.addText(p[:n])
		p = p[n:]
	}
	return c.flush()
}

// end handles the end of the log. It writes the start of a line that it had held back as a possible timestamp.
func (c *copier) end() error {
	c.addText(c.head)
	c.head = c.head[:0]
	return c.flush()
}

// addHead handles the start of a line, up to the end of its timestamp, and returns the number of bytes of p that it has
// used.
func (c *copier) addHead(p []byte) (int, error) {
	room := maxTimeBytes + 1 - len(c.head)
	n := bytes.IndexAny(p[:min(room, len(p))], " \n") + 1
	if n == 0 && len(p) < room {
		c.head = append(c.head, p...)
		return len(p), nil
	}
	if n == 0 {
		n = room
	}
	c.head = append(c.head, p[:n]...)
	last := c.head[len(c.head)-1]
	c.inLine = last != '\n'
	if last == ' ' {
		if at, err := time.Parse(time.RFC3339Nano, string(c.head[:len(c.head)-1])); err == nil {
			c.head = c.head[:0]
			return n, c.beginLine(at)
		}
	}
	c.addText(c.head)
	c.head = c.head[:0]
	return n, nil
}

// beginLine starts a line with its timestamp.
func (c *copier) beginLine(at time.Time) error {
	switch {
	case c.phase == copying:
	case c.at.lines == 0 || c.phase == inNewest:
		c.phase = copying
	case c.phase == skipping && at.Before(c.at.time):
		return nil
	case c.phase == skipping && at.After(c.at.time):
		c.phase = copying
	default:
		c.phase = counting
		if c.counted++; c.counted == c.at.lines {
			c.phase = inNewest
		}
		return nil
	}
	if err := c.markLine(); err != nil {
		return err
	}
	c.at, c.copied = c.at.next(at), 0
	return nil
}

// markLine makes a mark before the next line if one is due.
func (c *copier) markLine() error {
	isDue := c.unmarked >= markBytes || c.now.Sub(c.markedAt) >= markInterval
	if !isDue || c.mark == nil || c.at.lines == 0 {
		return nil
	}
	if err := c.flush(); err != nil {
		return err
	}
	c.mark(c.at.String())
	c.unmarked, c.markedAt = 0, c.now
	return nil
}

// addText handles a piece of a line after its timestamp.
func (c *copier) addText(p []byte) {
	switch c.phase {
	case skipping, counting:
		return
	case inNewest:
		n := min(c.toSkip, int64(len(p)))
		c.toSkip -= n
		p = p[n:]
	}
	if len(p) == 0 {
		return
	}
	c.out, c.hasNew = append(c.out, p...), true
	c.unmarked += int64(len(p))
	c.copied += int64(len(p))
}

// flush writes the pending output.
func (c *copier) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	err := c.write(c.out)
	c.out = c.out[:0]
	return err
}
