package shell

import (
	"os"
	"runtime"
)

// forker starts all programs from one OS thread, because the parent-death
// signal comes when the thread ends that forked. The Go runtime forks under a
// lock in any case, so more threads would start nothing sooner.
type forker struct {
	requests chan *start
	ended    chan struct{}
}

type start struct {
	path string
	argv []string
	attr *os.ProcAttr

	process *os.Process
	err     error
	done    chan struct{}
}

func newForker() *forker {
	f := &forker{requests: make(chan *start), ended: make(chan struct{})}
	go f.serve()
	return f
}

func (f *forker) serve() {
	defer close(f.ended)
	runtime.LockOSThread()
	for s := range f.requests {
		s.process, s.err = os.StartProcess(s.path, s.argv, s.attr)
		s.done <- struct{}{}
	}
}

// start is os.StartProcess.
func (f *forker) start(path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	s := &start{path: path, argv: argv, attr: attr, done: make(chan struct{}, 1)}
	f.requests <- s
	<-s.done
	return s.process, s.err
}

func (f *forker) close() {
	close(f.requests)
	<-f.ended
}
