package shell

import (
	"os"
	"syscall"

	"switchyard/activities/executor"
)

// treeFactory makes a process tree for each attempt. Safe for concurrent use.
type treeFactory interface {
	mechanism() Mechanism
	// enclose makes the process tree of the attempt with this id, and has the
	// watchdog hold its lease. The limits count where process trees have them by themselves.
	enclose(id string, lease *executor.Lease, l executor.Limits) (tree, error)
	// close gives back what the trees share; no tree is in use any more.
	close() error
}

// tree is the process tree of one attempt: the set of its processes. Its calls
// come one at a time, but for terminate and kill, which may come while the
// program is being waited for, as suspend and resume do, one at a time.
type tree interface {
	// attr says how to start the program so that it is inside.
	attr() *syscall.SysProcAttr
	// join is the file that a process writes "0" to in order to be inside; empty: where
	// it was started is all that counts.
	join() string
	// started is called with the process of the program. It is waited for elsewhere.
	started(pid int)
	// admit starts a further program inside, by start. It is waited for elsewhere.
	admit(start func() (*os.Process, error)) (*os.Process, error)
	// dismiss is called when a program that was admitted has been waited for.
	dismiss(pid int)
	// died is called when SIGKILL has ended the program, whoever has sent it.
	died()
	// terminate sends SIGTERM to all processes, each once.
	terminate()
	// kill sends SIGKILL to all processes and to those that they fork
	// meanwhile. It does not wait for their end.
	kill()
	// suspend has all processes stand still. It returns when they do, or with the
	// error of wanted; whether any does then is not known.
	suspend(wanted func() error) error
	// resume lets all of them continue.
	resume() error
	// empty reports whether no process is left.
	empty() bool
	// pids lists the processes.
	pids() []int
	// oomKilled reports whether the kernel ended a process for its memory use.
	oomKilled() bool
	// next makes the process tree, which is empty, ready for another program.
	next() error
	// clear kills until nothing is left. An error says that something is.
	clear() error
	// end is clear, and gives the process tree back. No call comes after it.
	end() error
}
