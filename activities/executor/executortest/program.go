package executortest

import (
	"fmt"
	"strings"
)

// Program is something for an executor to run. Exactly one of its actions happens
// after Out and Err were printed; without any it then exits with Code.
type Program struct {
	// Out and Err are printed first, on standard output and standard error.
	Out, Err string
	// Env names a variable whose value is printed on standard output.
	Env string
	// Echo prints what it reads from standard input, on standard output.
	Echo bool
	// PrintDir prints the working directory on standard output.
	PrintDir bool
	// Dir is the working directory that the spec asks for; empty: none.
	Dir string
	// Flood is a number of bytes printed on standard output, in lines.
	Flood int64
	// Daemon leaves behind a process that is orphaned, in a session of its own,
	// ignores SIGTERM, keeps both streams open and never ends.
	Daemon bool
	// Child leaves behind a child that keeps both streams open and never ends.
	Child bool
	// IgnoreTerm makes the program, and what it starts, ignore SIGTERM.
	IgnoreTerm bool
	// OnTerm is printed when SIGTERM comes, and the program exits with Code.
	OnTerm string
	// Sleep keeps it running until it is stopped.
	Sleep bool
	// Tick prints a line on standard output every 50 ms until it is stopped.
	Tick bool
	// Hog is how much memory, in bytes, it uses at last.
	Hog int64
	// AwaitFlag has it wait for the file that its variable SUITE_FLAG names.
	AwaitFlag bool
	// Kill is a signal, such as "KILL", that it sends to itself.
	Kill string
	// Code is the exit code.
	Code int
	// NotFound asks for a program that is not there, instead of all else.
	NotFound bool
}

// Script is the program for a POSIX shell; Dir and NotFound are not in it.
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
		// The substitution lasts until the daemon has let go of its pipe, so it
		// is there, and deaf to SIGTERM, before anything is printed.
		line(`{ ready=$( (setsid sh -c 'trap "" TERM HUP; exec >&3 3>&-; while :; do sleep 1; done' &) ); } 3>&1`)
	}
	if p.Child {
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
