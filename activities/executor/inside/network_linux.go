package inside

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// loopbacks are the addresses of a loopback interface, in the order in which Dial and Listen try them.
var loopbacks = []string{"127.0.0.1", "::1"}

// Dial connects to a TCP port of the process's loopback interface and returns a *net.TCPConn. It returns a Refusal if nothing
// listens on the port.
func (p Process) Dial(ctx context.Context, port int) (net.Conn, error) {
	if port < 1 || port > 65535 {
		return nil, refuse(fmt.Sprintf("%d is not a port: ports are from 1 to 65535", port))
	}
	var conn net.Conn
	err := p.inNetwork(func(control controlFunc) (err error) {
		dialer := net.Dialer{ControlContext: func(_ context.Context, network, address string, raw syscall.RawConn) error {
			return control(network, address, raw)
		}}
		for _, host := range loopbacks {
			conn, err = dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
			if err == nil || !errors.Is(err, unix.ECONNREFUSED) && !isWithoutAddress(err) {
				return err
			}
		}
		return err
	})
	switch {
	case errors.Is(err, unix.ECONNREFUSED) || isWithoutAddress(err):
		return nil, refuse(fmt.Sprintf("nothing listens on port %d of the attempt", port))
	case err != nil:
		return nil, err
	}
	return conn, nil
}

// Listen accepts TCP connections on a port of the process's loopback interface. Port 0 picks any free port. The listener closes
// when ctx or the process ends. Listen returns a Refusal if the port is in use.
func (p Process) Listen(ctx context.Context, port int) (net.Listener, error) {
	if port < 0 || port > 65535 {
		return nil, refuse(fmt.Sprintf("%d is not a port: ports are from 1 to 65535", port))
	}
	var listener net.Listener
	err := p.inNetwork(func(control controlFunc) (err error) {
		config := net.ListenConfig{Control: control}
		config.SetMultipathTCP(false) // a loopback interface has one path
		for _, host := range loopbacks {
			listener, err = config.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
			if err == nil || !isWithoutAddress(err) {
				return err
			}
		}
		return err
	})
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return nil, refuse(fmt.Sprintf("port %d of the attempt is in use", port))
	case errors.Is(err, unix.EACCES):
		return nil, refuse(fmt.Sprintf("the worker may not listen on port %d", port))
	case err != nil:
		return nil, err
	}
	h, err := p.open()
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	l := &processListener{Listener: listener, process: h, watched: make(chan struct{})}
	go func() {
		defer close(l.watched)
		if h.awaitEnd() {
			_ = l.Listener.Close()
		}
	}()
	l.stop = context.AfterFunc(ctx, func() { _ = l.Close() })
	return l, nil
}

// processListener is a listener that closes when a process ends.
type processListener struct {
	net.Listener
	process *hold
	watched chan struct{}
	stop    func() bool
}

// Close closes the listener.
func (l *processListener) Close() error {
	l.stop()
	err := l.Listener.Close()
	_ = l.process.Close()
	<-l.watched
	return err
}

// isWithoutAddress reports whether err means that the network lacks a loopback address, for example because IPv6 is disabled.
func isWithoutAddress(err error) bool {
	return errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.ENETUNREACH)
}

// controlFunc is called for each socket before it is used.
type controlFunc func(network, address string, raw syscall.RawConn) error

// inNetwork calls do on a thread in the network namespace of the process. The function it passes to do fails for sockets that
// were created on any other thread.
func (p Process) inNetwork(do func(control controlFunc) error) error {
	h, err := p.open()
	if err != nil {
		return err
	}
	defer h.Close()
	own, err := p.isOwn("ns/net")
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return refuse("the worker cannot enter its network because the worker is not root")
	}
	if err != nil {
		return errors.Join(h.check(), err)
	}
	if own {
		if err := h.check(); err != nil {
			return err
		}
		return do(func(string, string, syscall.RawConn) error { return nil })
	}
	space, err := os.Open(p.path("ns/net"))
	if err != nil {
		return errors.Join(h.check(), fmt.Errorf("open its network: %w", err))
	}
	defer space.Close()
	if err := h.check(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go onOwnThread(func() {
		if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- refuse(fmt.Sprintf("the worker may not enter its network: %v", err))
			return
		}
		thread := unix.Gettid()
		done <- do(func(string, string, syscall.RawConn) error {
			if unix.Gettid() != thread {
				return errors.New("the socket was created outside the network namespace")
			}
			return nil
		})
	})
	return <-done
}

// onOwnThread calls do on an OS thread that ends afterwards, so do may change the thread in any way. It never uses the main
// thread, which cannot end.
func onOwnThread(do func()) {
	runtime.LockOSThread()
	if unix.Gettid() != os.Getpid() {
		do()
		return // exiting while locked ends the thread
	}
	// Keep the main thread locked meanwhile, so that the next goroutine gets another thread.
	done := make(chan struct{})
	go func() {
		defer close(done)
		onOwnThread(do)
	}()
	<-done
	runtime.UnlockOSThread()
}
