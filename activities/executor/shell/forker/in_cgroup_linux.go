package forker

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// NewInCgroup returns a forker whose thread is in a cgroup v1 directory, given by its
// tasks file, so that the programs it forks start there. Moving a thread in and out for
// each program would take the kernel milliseconds, during which no other program starts.
// The memory of this process is not charged to that cgroup: it is charged where the main
// thread is, so the forker never uses the main thread.
func NewInCgroup(tasks string) (*Forker, error) {
	f := &Forker{requests: make(chan *request), ended: make(chan struct{})}
	joined := make(chan error, 1)
	go f.serveInside(tasks, joined)
	if err := <-joined; err != nil {
		<-f.ended
		return nil, fmt.Errorf("put a thread into a cgroup: %w", err)
	}
	return f, nil
}

func (f *Forker) serveInside(tasks string, joined chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		// Keep the main thread locked meanwhile, so that the next goroutine gets another
		// thread.
		elsewhere := make(chan error, 1)
		go f.serveInside(tasks, elsewhere)
		joined <- <-elsewhere
		runtime.UnlockOSThread()
		return
	}
	err := os.WriteFile(tasks, []byte(strconv.Itoa(unix.Gettid())), 0)
	joined <- err
	if err != nil {
		// The thread ends with this goroutine, whichever cgroup it is in.
		close(f.ended)
		return
	}
	f.serve()
}
