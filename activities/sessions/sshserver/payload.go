package sshserver

import (
	"math"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/crypto/ssh"

	"switchyard/activities/executor"
)

const (
	// maxVariables bounds the number of variables that a client sets, maxValue the length of each value in bytes.
	maxVariables, maxValue = 64, 4096
	// defaultColumns and defaultRows are the size of a terminal if the client does not know its size.
	defaultColumns, defaultRows = 80, 24
)

var (
	// variableNames matches the variables that clients may set: those for languages.
	variableNames = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(LANG|LC_[A-Z_]{1,40})$`) })
	// terminalNames matches valid terminal types.
	terminalNames = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`) })
	// signalNames are the signals of RFC 4254, section 6.10.
	signalNames = []string{"ABRT", "ALRM", "FPE", "HUP", "ILL", "INT", "KILL", "PIPE", "QUIT", "SEGV", "TERM", "USR1", "USR2"}
)

// exitStatus and exitSignal are the payloads of the requests exit-status and exit-signal (RFC 4254, section 6.10).
type (
	exitStatus struct{ Code uint32 }
	exitSignal struct {
		Signal            string
		Core              bool
		Message, Language string
	}
)

// parseText returns the text of a payload that consists of one string.
func parseText(payload []byte) (string, bool) {
	var m struct{ Text string }
	err := ssh.Unmarshal(payload, &m)
	return m.Text, err == nil
}

// parseTerminal returns the terminal that a client requests. It ignores the terminal modes; the defaults apply.
func parseTerminal(payload []byte) (*executor.Terminal, bool) {
	var m struct {
		Type                         string
		Columns, Rows, Width, Height uint32
		Modes                        string
	}
	if ssh.Unmarshal(payload, &m) != nil {
		return nil, false
	}
	if !terminalNames().MatchString(m.Type) {
		m.Type = "dumb"
	}
	return &executor.Terminal{Type: m.Type, Size: windowSize(m.Columns, m.Rows)}, true
}

func parseWindowChange(payload []byte) (executor.WindowSize, bool) {
	var m struct{ Columns, Rows, Width, Height uint32 }
	err := ssh.Unmarshal(payload, &m)
	return windowSize(m.Columns, m.Rows), err == nil
}

// windowSize returns the size of a terminal, clamped to valid values. 0 means unknown.
func windowSize(columns, rows uint32) executor.WindowSize {
	if columns == 0 || rows == 0 {
		columns, rows = defaultColumns, defaultRows
	}
	return executor.WindowSize{Columns: uint16(min(columns, math.MaxUint16)), Rows: uint16(min(rows, math.MaxUint16))}
}

// addVariable adds a variable that the client sets and reports whether it is allowed. Clients may also set TERM, although
// they send the type of their terminal with the terminal request.
func (s *session) addVariable(payload []byte) bool {
	var m struct{ Name, Value string }
	if ssh.Unmarshal(payload, &m) != nil || len(s.env) >= maxVariables || len(m.Value) > maxValue || strings.ContainsFunc(m.Value, unicode.IsControl) {
		return false
	}
	if !variableNames().MatchString(m.Name) && (m.Name != "TERM" || !terminalNames().MatchString(m.Value)) {
		return false
	}
	s.env[m.Name] = m.Value
	return true
}

// printable replaces line breaks with spaces and all other control characters with U+FFFD, so that the text cannot affect
// a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' {
			return ' '
		}
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
}
