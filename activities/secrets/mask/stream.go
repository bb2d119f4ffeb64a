package mask

import "encoding/json"

// run is a range of the held text that is to be replaced.
type run struct {
	Start int `json:"start"`
	End   int `json:"end"`
	// Written is set once the replacement has been emitted, although the end of the run may still change.
	Written bool `json:"written"`
}

// Stream masks a text that arrives in chunks. Its output does not depend on the boundaries of the chunks: every byte of an
// occurrence of a pattern is replaced, and overlapping occurrences share one Replacement. A Stream holds back the end of the
// text while a pattern may begin there, which is always shorter than the longest pattern. It is not safe for concurrent use.
type Stream struct {
	set   *Set
	state int32
	// held[from:] is the text received but not emitted yet. runs lists the ranges to replace in order, as positions in held.
	held []byte
	from int
	runs []run
	line line
}

// Stream returns a stream that masks the values of the set.
func (s *Set) Stream() *Stream { return &Stream{set: s, line: line{short: s.short}} }

// Append appends the part of the text that is final so far, including p, to dst.
func (m *Stream) Append(dst, p []byte) []byte {
	if len(m.line.short) > 0 {
		p = m.line.feed(p)
	}
	return m.feed(dst, p)
}

// Flush ends the text and appends the rest to dst. The stream is then ready for another text.
func (m *Stream) Flush(dst []byte) []byte {
	if len(m.line.short) > 0 {
		dst = m.feed(dst, m.line.end())
	}
	m.state = 0
	dst = m.settle(dst, len(m.held))
	m.held, m.from = m.held[:0], 0
	return dst
}

// CanResume reports whether a new stream would mask the text from here on in the same way: nothing is held back, and no line
// has begun that could be a short value.
func (m *Stream) CanResume() bool {
	return m.state == 0 && len(m.held) == m.from && len(m.line.held) == 0 && !m.line.passes
}

// saved is the part of a Stream that a text in progress needs, in JSON form.
type saved struct {
	Held   []byte `json:"held,omitempty"`
	Runs   []run  `json:"runs,omitempty"`
	Line   []byte `json:"line,omitempty"`
	Passes bool   `json:"passes,omitempty"`
}

// Save returns the state of the stream, from which Continue makes a stream that continues the text. The state holds what the
// stream holds back, which may be a part of a secret.
func (m *Stream) Save() ([]byte, error) {
	runs := make([]run, len(m.runs))
	for i, r := range m.runs {
		runs[i] = run{max(r.Start-m.from, 0), r.End - m.from, r.Written}
	}
	return json.Marshal(saved{m.held[m.from:], runs, m.line.held, m.line.passes})
}

// Continue returns a stream with a state that Save of a set with the same values has returned.
func (s *Set) Continue(state []byte) (*Stream, error) {
	var k saved
	if err := json.Unmarshal(state, &k); err != nil {
		return nil, err
	}
	m := s.Stream()
	m.held, m.runs, m.line.held, m.line.passes = k.Held, k.Runs, k.Line, k.Passes
	for _, c := range m.held {
		m.state = s.automaton.step(m.state, c)
	}
	return m, nil
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

// cover marks a range of held for replacement and merges it with the runs that it overlaps. end is the end of held.
func (m *Stream) cover(start, end int) {
	written := false
	for len(m.runs) > 0 && start < m.runs[len(m.runs)-1].End {
		last := m.runs[len(m.runs)-1]
		start, written = min(start, last.Start), written || last.Written
		m.runs = m.runs[:len(m.runs)-1]
	}
	m.runs = append(m.runs, run{start, end, written})
}

// settle emits held up to limit, the earliest position where another occurrence may begin.
func (m *Stream) settle(dst []byte, limit int) []byte {
	done := 0
	for i := range m.runs {
		r := &m.runs[i]
		if r.Start >= limit {
			break
		}
		if !r.Written {
			dst = append(dst, m.held[m.from:r.Start]...)
			dst = append(dst, Replacement...)
			r.Written = true
		}
		m.from = max(m.from, min(r.End, limit))
		if r.End > limit {
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

// compactFrom is the number of emitted bytes that a stream keeps before it moves the held text to the front.
const compactFrom = 4 << 10

func (m *Stream) compact() {
	if m.from < compactFrom || m.from < len(m.held)/2 {
		return
	}
	m.held = m.held[:copy(m.held, m.held[m.from:])]
	for i := range m.runs {
		m.runs[i].Start, m.runs[i].End = m.runs[i].Start-m.from, m.runs[i].End-m.from
	}
	m.from = 0
}
