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
	// end kills until nothing is left, then gives the enclosure back. An error
	// says that something is left. No call comes after it.
	end() error
}
