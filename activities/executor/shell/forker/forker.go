package forker

import (
	"os"
	"runtime"
)

// Forker starts all programs from one OS thread, because the parent-death
// signal is sent when the forking thread ends. The Go runtime forks under a
// lock in any case, so more threads would not start programs sooner.
type Forker struct {
	requests chan *request
	ended    chan struct{}
}

type request struct {
	path string
	argv []string
	attr *os.ProcAttr

	process *os.Process
	err     error
	done    chan struct{}
}

// New returns a forker. Its thread runs until Close.
func New() *Forker {
	f := &Forker{requests: make(chan *request), ended: make(chan struct{})}
	go f.serve()
	return f
}

func (f *Forker) serve() {
	defer close(f.ended)
	runtime.LockOSThread()
	for s := range f.requests {
		s.process, s.err = os.StartProcess(s.path, s.argv, s.attr)
		s.done <- struct{}{}
	}
}

// Start calls os.StartProcess on the thread of the Forker and returns its results.
func (f *Forker) Start(path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	s := &request{path: path, argv: argv, attr: attr, done: make(chan struct{}, 1)}
	f.requests <- s
	<-s.done
	return s.process, s.err
}

// Close ends the thread. No Start may be in progress.
func (f *Forker) Close() {
	close(f.requests)
	<-f.ended
}
