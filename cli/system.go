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

// system is the process environment of a command. Tests supply their own.
type system struct {
	stdin  io.Reader
	stdout io.Writer
	// screen is standard error.
	screen *tui.Screen
	// rawStdout and rawStderr write every byte unchanged. On a terminal, stdout and screen filter out everything but
	// text.
	rawStdout, rawStderr io.Writer
	// stderrTerminal and stdoutTerminal are true if the stream is a terminal that can move its cursor and show colours.
	stderrTerminal, stdoutTerminal bool
	// stdoutSize returns the size of standard output in cells. It is nil if standard output is not a terminal.
	stdoutSize func() (width, height int)
	// stderrPlain and stdoutPlain are true if the stream shows only text.
	stderrPlain, stdoutPlain bool
	getenv                   func(string) string
	now                      func() time.Time
	zone                     *time.Location // for times in text output
	// origins holds where the command's flags got their values, once they are set.
	origins config.Origins
	// forceAfter is how long an interrupted run may take to end, and killedEndTimeout how long it may take after its
	// programs were killed.
	forceAfter, killedEndTimeout time.Duration
	// forceTimeout bounds the request to end a run by force, and forcedEndTimeout the wait for its end after that.
	forceTimeout, forcedEndTimeout time.Duration
	// answerTimeout is how long a second signal waits for the answer to the cancellation of a run on a gateway.
	answerTimeout time.Duration
	// logsTimeout is how long logs may lag behind the end of their run.
	logsTimeout time.Duration
	// pollInterval is the time between two looks at a node, a machine or an environment that a command waits for.
	pollInterval time.Duration
	// secondSignal is the action of the second signal, if any, before the third signal ends the process.
	secondSignal secondSignal
	// signals routes signals to a program in a task while one takes them.
	signals signalDiversion
	// rawTerminal is restored when the process has to exit immediately.
	rawTerminal atomic.Pointer[terminal.Raw]
	// exitFolders is removed when the process has to exit immediately.
	exitFolders stack.ExitFolders
}

// newSystem returns the system of a process with these streams.
func newSystem(stdin, stdout, stderr *os.File, getenv func(string) string) *system {
	// A dumb terminal cannot move its cursor.
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
		forceTimeout: follow.ForceTimeout, forcedEndTimeout: follow.ForcedEndTimeout, logsTimeout: follow.LogsTimeout,
		answerTimeout: follow.AnswerTimeout, pollInterval: 250 * time.Millisecond,
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

// sizeOf returns a function that returns the current size of a terminal in cells.
func sizeOf(terminal *os.File) func() (width, height int) {
	return func() (int, int) {
		width, height, err := term.GetSize(int(terminal.Fd()))
		if err != nil || width <= 0 || height <= 0 {
			return 80, 24
		}
		return width, height
	}
}

// progressStyle returns the style of text on standard error. dataStyle does the same for standard output.
func (s *system) progressStyle() tui.Style {
	return tui.Style{Color: s.stderrTerminal && s.getenv("NO_COLOR") == "", Zone: s.zone}
}

func (s *system) dataStyle() tui.Style {
	return tui.Style{Color: s.stdoutTerminal && s.getenv("NO_COLOR") == "", Zone: s.zone}
}

// dataWidth returns the width of standard output in cells, or 0 if standard output is not a terminal and so has no
// limit.
func (s *system) dataWidth() int {
	if s.stdoutSize == nil {
		return 0
	}
	width, _ := s.stdoutSize()
	return width
}

// terminal returns the terminal that the follower of a run draws on.
func (s *system) terminal() *follow.Terminal {
	return &follow.Terminal{
		Stdout: s.stdout, Screen: s.screen, Style: s.progressStyle(), Redraws: s.stderrTerminal, PlainScreen: s.stderrPlain,
		Now: s.now, ForceAfter: s.forceAfter, KilledEndTimeout: s.killedEndTimeout,
		ForceTimeout: s.forceTimeout, ForcedEndTimeout: s.forcedEndTimeout, AnswerTimeout: s.answerTimeout, LogsTimeout: s.logsTimeout, OnSecondSignal: s.secondSignal.set, Divert: s.signals.set,
	}
}

// formatTime formats a time for people, or returns "" if t is nil.
func (s *system) formatTime(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().In(s.zone).Format(time.DateTime)
}

// formatAge formats how long ago t was, or returns "" if t is nil.
func (s *system) formatAge(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return words.Duration(max(0, s.now().Sub(t.AsTime()))) + " ago"
}
