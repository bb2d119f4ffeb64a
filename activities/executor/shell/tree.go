package shell

import (
	"syscall"

	"switchyard/activities/executor"
)

// trees make an enclosure for each attempt. Safe for concurrent use.
type trees interface {
	mechanism() Mechanism
	// enclose makes the enclosure of the attempt with this id, and has the
	// watchdog hold its lease.
	enclose(id string, lease *executor.Lease) (tree, error)
	// close gives back what the trees share; no tree is in use any more.
	close() error
}

// tree is the enclosure of one attempt: the set of its processes. Its calls
// come one at a time, but for terminate and kill, which may come while the
// program is being waited for.
type tree interface {
	// attr says how to start the program so that it is inside.
	attr() *syscall.SysProcAttr
	// started tells which process is the program. It is waited for elsewhere.
	started(pid int)
	// died tells that SIGKILL has ended the program, whoever has sent it.
	died()
	// terminate sends SIGTERM to all processes, each once.
	terminate()
	// kill sends SIGKILL to all processes and to those that they fork
	// meanwhile. It does not wait for their end.
	kill()
	// empty tells whether no process is left.
	empty() bool
	// pids lists the processes.
	pids() []int
	// oomKilled tells whether the kernel ended a process for its memory use.
	oomKilled() bool
	// next makes the enclosure, which is empty, ready for another program.
	next() error
	// clear kills until nothing is left. An error says that something is.
	clear() error
	// end is clear, and gives the enclosure back. No call comes after it.
	end() error
}
