package mask

// run is a part of what a Stream holds that is to be replaced.
type run struct {
	start, end int
	// written says that the replacement is written: the run has begun before what may still change.
	written bool
}

// Stream masks a text that comes in pieces. What it gives does not depend on where the pieces end: each byte that is in an
// occurrence of a pattern is replaced, and occurrences that overlap have one Replacement. It holds back the end of what
// has come as long as a pattern may begin there, which is less than the longest pattern. One goroutine uses it at a time.
type Stream struct {
	set   *Set
	state int32
	// held[from:] has come and is not given yet, and runs are in it, in order. Positions are those in held.
	held []byte
	from int
	runs []run
	line line
}

// Stream returns a stream that masks the values of the set.
func (s *Set) Stream() *Stream { return &Stream{set: s, line: line{short: s.short}} }

// Append appends what is certain of the text so far, p included, to dst.
func (m *Stream) Append(dst, p []byte) []byte {
	if len(m.line.short) > 0 {
		p = m.line.feed(p)
	}
	return m.feed(dst, p)
}

// Flush appends the rest: the text has ended. Another one may follow.
func (m *Stream) Flush(dst []byte) []byte {
	if len(m.line.short) > 0 {
		dst = m.feed(dst, m.line.end())
	}
	m.state = 0
	dst = m.settle(dst, len(m.held))
	m.held, m.from = m.held[:0], 0
	return dst
}

// CanResume reports whether a new stream that is given the text from here on masks it as this one does: nothing is held back,
// and no line has begun in which a value is looked for that is a whole line.
func (m *Stream) CanResume() bool {
	return m.state == 0 && len(m.held) == m.from && len(m.line.held) == 0 && !m.line.passes
}

func (m *Stream) feed(dst, p []byte) []byte {
	a := m.set.automaton
	for i := 0; i < len(p); i++ {
		if m.state == 0 && len(m.held) == m.from {
			n := a.skip(p[i:])
			dst = append(dst, p[i:i+n]...)
			if i += n; i == len(p) {
				break
			}
			m.held, m.from = m.held[:0], 0
		}
		m.held = append(m.held, p[i])
		m.state = a.step(m.state, p[i])
		at := &a.nodes[m.state]
		if at.match > 0 {
			m.cover(len(m.held)-int(at.match), len(m.held))
		}
		if limit := len(m.held) - int(at.depth); limit > m.from {
			dst = m.settle(dst, limit)
		}
	}
	return dst
}

// cover marks a part of what is held, which ends where that does.
func (m *Stream) cover(start, end int) {
	written := false
	for len(m.runs) > 0 && start < m.runs[len(m.runs)-1].end {
		last := m.runs[len(m.runs)-1]
		start, written = min(start, last.start), written || last.written
		m.runs = m.runs[:len(m.runs)-1]
	}
	m.runs = append(m.runs, run{start, end, written})
}

// settle appends what is held up to limit, where the next occurrence may begin at the earliest.
func (m *Stream) settle(dst []byte, limit int) []byte {
	done := 0
	for i := range m.runs {
		r := &m.runs[i]
		if r.start >= limit {
			break
		}
		if !r.written {
			dst = append(dst, m.held[m.from:r.start]...)
			dst = append(dst, Replacement...)
			r.written = true
		}
		m.from = max(m.from, min(r.end, limit))
		if r.end > limit {
			break
		}
		done++
	}
	m.runs = append(m.runs[:0], m.runs[done:]...)
	if m.from < limit {
		dst = append(dst, m.held[m.from:limit]...)
		m.from = limit
	}
	m.compact()
	return dst
}

// compactFrom is how much given text a stream keeps before it moves what it holds.
const compactFrom = 4 << 10

func (m *Stream) compact() {
	if m.from < compactFrom || m.from < len(m.held)/2 {
		return
	}
	m.held = m.held[:copy(m.held, m.held[m.from:])]
	for i := range m.runs {
		m.runs[i].start, m.runs[i].end = m.runs[i].start-m.from, m.runs[i].end-m.from
	}
	m.from = 0
}
