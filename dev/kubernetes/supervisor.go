package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// readyLimit is how long a service may take to become ready. The slowest takes 20 s on a machine with two
	// processors that is also building something.
	readyLimit = 3 * time.Minute
	// stopLimit is how long a service may take to end after SIGTERM.
	stopLimit = 3 * time.Second
	pollEvery = 50 * time.Millisecond
)

// self is this binary, even if the file has been replaced since the start.
const self = "/proc/self/exe"

// service is a program that runs as long as the cluster.
type service struct {
	name    string
	program string
	args    []string
	// ready returns an error until the service can be used. It may be nil.
	ready func(context.Context) error
}

// supervisor runs services as children that die with this process. Its methods are safe for concurrent use.
type supervisor struct {
	// logs is the folder with one output file per service.
	logs  string
	began time.Time

	mu       sync.Mutex
	children []*child
	// failed receives the first service that ends without having been stopped.
	failed chan error
}

type child struct {
	service
	process *os.Process
	// stopping is set before the supervisor ends the child. The supervisor's lock guards it.
	stopping bool
	done     chan struct{}
}

func newSupervisor(logs string) *supervisor {
	return &supervisor{logs: logs, began: time.Now(), failed: make(chan error, 1)}
}

// start starts a service and waits until it is ready.
func (s *supervisor) start(ctx context.Context, svc service) error {
	c, err := s.spawn(svc)
	if err != nil {
		return fmt.Errorf("start %s: %w", svc.name, err)
	}
	s.mu.Lock()
	s.children = append(s.children, c)
	s.mu.Unlock()
	if svc.ready == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for {
		err := svc.ready(ctx)
		if err == nil {
			fmt.Fprintf(os.Stderr, "%6.2fs %s is ready\n", time.Since(s.began).Seconds(), svc.name)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s did not become ready: %w; its log is %s", svc.name, errors.Join(ctx.Err(), err), s.log(svc))
		case <-c.done:
			return fmt.Errorf("%s ended before it was ready; its log is %s", svc.name, s.log(svc))
		case <-time.After(pollEvery):
		}
	}
}

func (s *supervisor) log(svc service) string { return filepath.Join(s.logs, svc.name+".log") }

func (s *supervisor) spawn(svc service) (*child, error) {
	log, err := os.OpenFile(s.log(svc), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(svc.program, svc.args...)
	cmd.Stdout, cmd.Stderr = log, log
	// Kubernetes as a whole uses 870 MB with this setting, and a third more without it.
	cmd.Env = append(os.Environ(), "GOGC=50")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	c := &child{service: svc, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel sends Pdeathsig when the thread that started the child ends, so this thread must live on.
		runtime.LockOSThread()
		err := cmd.Start()
		c.process = cmd.Process
		started <- err
		if err != nil {
			return
		}
		err = cmd.Wait()
		s.mu.Lock()
		stopping := c.stopping
		s.mu.Unlock()
		if !stopping {
			select {
			case s.failed <- fmt.Errorf("%s ended: %v; its log is %s", svc.name, err, s.log(svc)):
			default:
			}
		}
		close(c.done)
	}()
	return c, <-started
}

// pause stops a service, and returns when all of its threads have stopped. It keeps its connections.
func (s *supervisor) pause(name string) error {
	process, err := s.processOf(name)
	if err != nil {
		return err
	}
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	err = syscall.EINTR
	for errors.Is(err, syscall.EINTR) {
		err = unix.Waitid(unix.P_PID, process.Pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
	}
	return os.NewSyscallError("waitid", err)
}

// resume continues a service.
func (s *supervisor) resume(name string) error {
	process, err := s.processOf(name)
	if err != nil {
		return err
	}
	return process.Signal(syscall.SIGCONT)
}

// processOf returns the process of a service that runs and is not being ended.
func (s *supervisor) processOf(name string) (*os.Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.children {
		if c.name == name && !c.stopping {
			return c.process, nil
		}
	}
	return nil, fmt.Errorf("no service %s is running", name)
}

// kill ends a service with SIGKILL, like a crash. It returns the service, so that start can restart it.
func (s *supervisor) kill(name string) (service, error) {
	s.mu.Lock()
	at := slices.IndexFunc(s.children, func(c *child) bool { return c.name == name })
	if at < 0 {
		s.mu.Unlock()
		return service{}, fmt.Errorf("no service %s is running", name)
	}
	c := s.children[at]
	s.children = slices.Delete(s.children, at, at+1)
	c.stopping = true
	s.mu.Unlock()
	if err := c.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return service{}, err
	}
	<-c.done
	return c.service, nil
}

// stopAll ends the services in reverse start order.
func (s *supervisor) stopAll() {
	s.mu.Lock()
	children := s.children
	s.children = nil
	for _, c := range children {
		c.stopping = true
	}
	s.mu.Unlock()
	for _, c := range slices.Backward(children) {
		_ = c.process.Signal(syscall.SIGTERM)
		_ = c.process.Signal(syscall.SIGCONT)
		select {
		case <-c.done:
		case <-time.After(stopLimit):
			_ = c.process.Kill()
			<-c.done
		}
	}
}
