package cli

import (
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/term"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/cli/config"
	"switchyard/cli/follow"
	"switchyard/cli/stack"
	"switchyard/cli/terminal"
	"switchyard/cli/tui"
	"switchyard/drawing/words"
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
	// stderrTerminal and stdoutTerminal are set if the stream is a terminal that can
	// move its cursor and colour.
	stderrTerminal, stdoutTerminal bool
	// stdoutSize returns how many cells standard output has, or is nil if it is no terminal.
	stdoutSize func() (width, height int)
	// stderrPlain and stdoutPlain are set if the stream shows only text.
	stderrPlain, stdoutPlain bool
	getenv                   func(string) string
	now                      func() time.Time
	zone                     *time.Location // of the times in texts
	// origins are those of the flags of the command, once they are set.
	origins config.Origins
	// forceAfter is how long an interrupted run may take to end, and killedEndTimeout how
	// long it may take once its programs were killed.
	forceAfter, killedEndTimeout time.Duration
	// secondSignal is what the second signal does, if anything, before the third one ends the process.
	secondSignal secondSignal
	// signals may be taken by a program in a task.
	signals signalDiversion
	// rawTerminal is restored when the process has to end at once.
	rawTerminal atomic.Pointer[terminal.Raw]
	// exitFolders are removed when the process has to end at once.
	exitFolders stack.ExitFolders
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

		forceAfter: follow.ForceAfter, killedEndTimeout: follow.KilledEndTimeout,
	}
	if term.IsTerminal(int(stdout.Fd())) {
		sys.stdout, sys.stdoutTerminal, sys.stdoutPlain = tui.NewTerminalWriter(stdout, smart), smart, true
		sys.stdoutSize = sizeOf(stdout)
	}
	if term.IsTerminal(int(stderr.Fd())) {
		sys.screen, sys.stderrTerminal, sys.stderrPlain = tui.NewTerminal(stderr, smart, sizeOf(stderr)), smart, true
	}
	return sys
}

// sizeOf returns a function for how many cells a terminal has now.
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

// dataWidth returns the width of standard output in cells, or 0 if it is no terminal and
// has no limit.
func (s *system) dataWidth() int {
	if s.stdoutSize == nil {
		return 0
	}
	width, _ := s.stdoutSize()
	return width
}

// terminal returns the system as the follower of a run uses it.
func (s *system) terminal() *follow.Terminal {
	return &follow.Terminal{
		Stdout: s.stdout, Screen: s.screen, Style: s.progressStyle(), Redraws: s.stderrTerminal, PlainScreen: s.stderrPlain,
		Now: s.now, ForceAfter: s.forceAfter, KilledEndTimeout: s.killedEndTimeout, OnSecondSignal: s.secondSignal.set,
	}
}

// formatTime returns a time for people, or "" if t is nil.
func (s *system) formatTime(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().In(s.zone).Format(time.DateTime)
}

// formatAge returns how long ago a time was, or "" if t is nil.
func (s *system) formatAge(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return words.Duration(max(0, s.now().Sub(t.AsTime()))) + " ago"
}
