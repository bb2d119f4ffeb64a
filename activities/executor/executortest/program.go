package executortest

import (
	"fmt"
	"strings"
)

// Program describes what an executor runs. It prints Out and Err first, then
// performs the actions whose fields are set, and exits with Code.
type Program struct {
	// Out and Err are printed first, on standard output and standard error.
	Out, Err string
	// Env names a variable whose value is printed on standard output.
	Env string
	// Echo copies standard input to standard output.
	Echo bool
	// PrintDir prints the working directory on standard output.
	PrintDir bool
	// Dir is the working directory that the spec requests, or "" for none.
	Dir string
	// Flood is the number of bytes to print on standard output, in lines.
	Flood int64
	// Daemon leaves behind an orphaned process in a session of its own, which
	// ignores SIGTERM, keeps both streams open and never ends.
	Daemon bool
	// Child leaves behind a child that keeps both streams open and never ends. With Tick, it is in a session of its own and
	// prints "tock".
	Child bool
	// IgnoreTerm makes the program and its children ignore SIGTERM.
	IgnoreTerm bool
	// OnTerm is printed on SIGTERM, before the program exits with Code.
	OnTerm string
	// Sleep keeps the program running until it is stopped.
	Sleep bool
	// Tick prints a line on standard output every 50 ms until it is stopped.
	Tick bool
	// Hog is how much memory the program uses, in bytes.
	Hog int64
	// AwaitFlag makes the program wait for the file named by its variable
	// SUITE_FLAG.
	AwaitFlag bool
	// Kill is a signal, such as "KILL", that the program sends to itself.
	Kill string
	// Code is the exit code.
	Code int
	// NotFound requests a program that does not exist, and overrides all other
	// fields.
	NotFound bool
}

// Script returns the program as a script for a POSIX shell. It ignores Dir and
// NotFound.
func (p Program) Script() string {
	var s strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&s, format+"\n", args...) }
	if p.IgnoreTerm {
		line("trap '' TERM")
	}
	if p.OnTerm != "" {
		line("trap 'printf %%s %s; exit %d' TERM", p.OnTerm, p.Code)
	}
	if p.Daemon {
		// The substitution lasts until the daemon closes its pipe. So the daemon
		// is running and ignores SIGTERM before anything is printed.
		line(`{ ready=$( (setsid sh -c 'trap "" TERM HUP; exec >&3 3>&-; while :; do sleep 1; done' &) ); } 3>&1`)
	}
	switch {
	case p.Child && p.Tick:
		line("setsid sh -c 'while :; do echo tock; sleep 0.05; done' &")
	case p.Child:
		line("sleep 100000 &")
	}
	if p.Out != "" {
		line("printf %%s %s", quote(p.Out))
	}
	if p.Err != "" {
		line("printf %%s %s >&2", quote(p.Err))
	}
	if p.Env != "" {
		line(`printf %%s "$%s"`, p.Env)
	}
	if p.Echo {
		line("cat")
	}
	if p.PrintDir {
		line("pwd")
	}
	if p.Flood > 0 {
		line("yes 'a line of output that is of no interest to anyone' | head -c %d", p.Flood)
	}
	if p.Hog > 0 {
		line(`x=$(yes | head -c %d); test -n "$x"`, p.Hog)
	}
	if p.AwaitFlag {
		line(`while [ ! -e "$SUITE_FLAG" ]; do sleep 0.02; done`)
	}
	if p.Tick {
		line("while :; do echo tick; sleep 0.05; done")
	}
	if p.Kill != "" {
		line("kill -%s $$", p.Kill)
	}
	if p.Sleep {
		line("while :; do sleep 0.05; done")
	}
	line("exit %d", p.Code)
	return s.String()
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
