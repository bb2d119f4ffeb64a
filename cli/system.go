package cli

import (
	"io"
	"os"
	"time"

	"golang.org/x/term"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/cli/tui"
)

// system is the process around a command. Tests bring their own.
type system struct {
	stdin  io.Reader
	stdout io.Writer
	// screen is standard error.
	screen *tui.Screen
	// rawStdout and rawStderr take every byte as it is. On a terminal stdout and
	// screen let only through what shows as text.
	rawStdout, rawStderr io.Writer
	// stderrTerminal and stdoutTerminal say where people watch, on a terminal that
	// can move its cursor and colour.
	stderrTerminal, stdoutTerminal bool
	// stderrPlain and stdoutPlain say where only what shows as text is let through.
	stderrPlain, stdoutPlain bool
	getenv                   func(string) string
	now                      func() time.Time
	zone                     *time.Location // of the times that are told
	// origins say where the flags of the command come from that are not their
	// defaults, by name: a flag, a variable, or a line of a file.
	origins map[string]string
	// forceAfter is how long an interrupted run may take to end.
	forceAfter time.Duration
	// hurry is what the second signal does, if anything, before the third one ends the process.
	hurry hurrying
	// leftovers are removed when the process has to end at once.
	leftovers leftovers
}

// newSystem is the system of a process with these streams.
func newSystem(stdin, stdout, stderr *os.File, getenv func(string) string) *system {
	// A terminal that is called dumb cannot move its cursor.
	smart := getenv("TERM") != "dumb"
	sys := &system{
		stdin:     stdin,
		stdout:    stdout,
		screen:    tui.NewScreen(stderr, sizeOf(stderr)),
		rawStdout: stdout, rawStderr: stderr,
		getenv: getenv,
		now:    time.Now,
		zone:   time.Local,

		forceAfter: forceAfter,
	}
	if term.IsTerminal(int(stdout.Fd())) {
		sys.stdout, sys.stdoutTerminal, sys.stdoutPlain = tui.NewTerminalWriter(stdout, smart), smart, true
	}
	if term.IsTerminal(int(stderr.Fd())) {
		sys.screen, sys.stderrTerminal, sys.stderrPlain = tui.NewTerminal(stderr, smart, sizeOf(stderr)), smart, true
	}
	return sys
}

// sizeOf returns what tells how many cells a terminal has now.
func sizeOf(terminal *os.File) func() (width, height int) {
	return func() (int, int) {
		width, height, err := term.GetSize(int(terminal.Fd()))
		if err != nil || width <= 0 || height <= 0 {
			return 80, 24
		}
		return width, height
	}
}

// progressStyle is for what goes to standard error, dataStyle for standard output.
func (s *system) progressStyle() tui.Style {
	return tui.Style{Color: s.stderrTerminal && s.getenv("NO_COLOR") == "", Zone: s.zone}
}

func (s *system) dataStyle() tui.Style {
	return tui.Style{Color: s.stdoutTerminal && s.getenv("NO_COLOR") == "", Zone: s.zone}
}

// at is a time as people read it; "" where there is none.
func (s *system) at(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().In(s.zone).Format(time.DateTime)
}

// ago is how long ago a time was; "" where there is none.
func (s *system) ago(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return tui.Duration(max(0, s.now().Sub(t.AsTime()))) + " ago"
}
