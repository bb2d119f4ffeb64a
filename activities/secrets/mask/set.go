package mask

import "strings"

// Replacement replaces each value.
const Replacement = "***"

// Set is a set of values to mask. It is immutable and safe for concurrent use. A nil Set masks nothing.
type Set struct {
	automaton *automaton
	// short holds the values shorter than MinLength.
	short []string
}

// New returns a set of the values, or nil if there is nothing to mask.
func New(values []string) *Set {
	s := &Set{}
	var patterns []string
	for _, value := range values {
		if IsShort(value) && strings.TrimSpace(value) != "" {
			s.short = append(s.short, value)
		}
		patterns = append(patterns, patternsOf(value)...)
	}
	if len(patterns) == 0 && len(s.short) == 0 {
		return nil
	}
	s.automaton, s.short = newAutomaton(distinct(patterns)), distinct(s.short)
	return s
}

// IsShort reports whether a value is masked only where it is a whole line or a whole value.
func IsShort(value string) bool { return len(value) < MinLength }

// Text returns the text with each value replaced by Replacement.
func (s *Set) Text(text string) string {
	if s == nil || text == "" {
		return text
	}
	if s.isClean(text) {
		return text
	}
	return string(s.Bytes([]byte(text)))
}

// Bytes returns the bytes with each value replaced by Replacement. It may return p itself, and does not modify p.
func (s *Set) Bytes(p []byte) []byte {
	if s == nil || len(p) == 0 {
		return p
	}
	m := s.Stream()
	return m.Flush(m.Append(make([]byte, 0, len(p)), p))
}

// isClean reports quickly whether the text certainly contains no value.
func (s *Set) isClean(text string) bool {
	for _, value := range s.short {
		if strings.Contains(text, value) {
			return false
		}
	}
	for i := range len(text) - 1 {
		if s.automaton.begins(text[i], text[i+1]) {
			return false
		}
	}
	return true
}
