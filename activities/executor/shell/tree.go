package shell

import (
	"os"
	"syscall"

	"switchyard/activities/executor"
)

// treeFactory creates a process tree for each attempt. It is safe for concurrent use.
type treeFactory interface {
	mechanism() Mechanism
	// enclose creates the process tree of the attempt with an id, and registers its lease and how it is
	// stopped with the watchdog. The limits apply only if process trees enforce them by themselves.
	enclose(id string, e executor.Ending, l executor.Limits) (tree, error)
	// close releases what the trees share. No tree may be in use.
	close() error
}

// tree is the process tree of one attempt: the set of its processes. Its methods are called one at
// a time, except that terminate and kill may be called while the program is being waited for, and
// so may suspend and resume, one at a time.
type tree interface {
	// attr returns the attributes that start the program inside the tree.
	attr() *syscall.SysProcAttr
	// join returns the file to which a process writes "0" to enter the tree, or "" if only the
	// place where a process was started matters.
	join() string
	// started registers the process of the program. The caller waits for it.
	started(pid int)
	// admit starts another program inside the tree with start. The caller waits for it.
	admit(start func() (*os.Process, error)) (*os.Process, error)
	// dismiss reports that an admitted program has been waited for.
	dismiss(pid int)
	// noteSIGKILL records that SIGKILL has ended the program, whoever sent it.
	noteSIGKILL()
	// terminate sends the stop signal to each process once.
	terminate()
	// kill sends SIGKILL to all processes, including those they fork meanwhile. It does not wait
	// for them to end.
	kill()
	// suspend stops all processes. It returns nil once they have stopped. If wanted returns an
	// error first, suspend returns that error, and some processes may be stopped.
	suspend(wanted func() error) error
	// resume resumes all processes.
	resume() error
	// isEmpty reports whether no process is left.
	isEmpty() bool
	// pids returns the PIDs of the processes.
	pids() []int
	// oomKilled reports whether the kernel ended a process for its memory use.
	oomKilled() bool
	// next prepares the empty process tree for another program.
	next() error
	// clear kills processes until none is left. An error means that some survived.
	clear() error
	// end acts like clear and then releases the process tree. No call may follow.
	end() error
}
