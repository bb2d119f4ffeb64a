package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"sync"
	"time"
)

// relayPorts starts a plain relay to local ports, and returns its own ports and its name: socat, or a minimal relay in
// this process if socat is missing.
func relayPorts(ctx context.Context, ports [targetPorts]int) (local [targetPorts]int, name string, stop func(), err error) {
	start, name := startSocat, "`socat`"
	if _, err := exec.LookPath("socat"); err != nil {
		fmt.Print("There is no socat here; a minimal relay in Go stands for it.\n\n")
		start, name = startRelay, "minimal relay in Go"
	}
	var stops []func()
	stop = func() {
		for _, stop := range stops {
			stop()
		}
	}
	for i, port := range ports {
		var stopOne func()
		if local[i], stopOne, err = start(ctx, port); err != nil {
			stop()
			return local, name, nil, err
		}
		stops = append(stops, stopOne)
	}
	return local, name, stop, nil
}

// startSocat starts socat with its default options.
func startSocat(ctx context.Context, port int) (int, func(), error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, nil, err
	}
	local := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil { // socat cannot report which port it has taken
		return 0, nil, err
	}
	cmd := exec.CommandContext(ctx, "socat", fmt.Sprintf("TCP-LISTEN:%d,bind=127.0.0.1,fork,reuseaddr", local), fmt.Sprintf("TCP:127.0.0.1:%d", port))
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	stop := func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	for until := time.Now().Add(time.Minute); ; {
		c, err := dialPort(local)
		if err == nil {
			return local, stop, c.Close()
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil || time.Now().After(until) {
			stop()
			return 0, nil, fmt.Errorf("socat does not listen on port %d", local)
		}
	}
}

// startRelay starts a relay in this process.
func startRelay(_ context.Context, port int) (int, func(), error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, nil, err
	}
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go relay(c.(*net.TCPConn), port)
		}
	}()
	return l.Addr().(*net.TCPAddr).Port, func() { _ = l.Close() }, nil
}

// relay copies in both directions with half-close, and without splicing.
func relay(near *net.TCPConn, port int) {
	defer near.Close()
	far, err := dialPort(port)
	if err != nil {
		return
	}
	defer far.Close()
	half := func(to, from *net.TCPConn) {
		_, _ = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 32<<10))
		_ = to.CloseWrite()
	}
	var back sync.WaitGroup
	back.Go(func() { half(near, far) })
	half(far, near)
	back.Wait()
}
