package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// forwardSize is the number of bytes that a connection carries in one direction.
	forwardSize = 256 << 20
	// forwardTrips is the number of single-byte round trips in a round.
	forwardTrips = 500
)

// The ports of a target.
const (
	sinkPort = iota
	sourcePort
	echoPort
	targetPorts
)

// forward compares `runs port-forward` with a minimal relay, alternating between the two. Target and relay are in this
// process; the task uses the host network.
func (b *sessionBench) forward(ctx context.Context, rounds int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	target := &localPorts{}
	defer target.close()
	relay := &localPorts{}
	defer relay.close()
	for _, serve := range [targetPorts]func(*net.TCPConn){
		sinkPort: func(c *net.TCPConn) {
			n, _ := discard(c)
			_, _ = fmt.Fprintln(c, n) // a client that has gone measures nothing
		},
		sourcePort: func(c *net.TCPConn) { _ = sendZeros(c) },
		echoPort: func(c *net.TCPConn) {
			_, _ = io.CopyBuffer(struct{ io.Writer }{c}, struct{ io.Reader }{c}, make([]byte, 1))
		},
	} {
		port, err := target.open(serve)
		if err != nil {
			return err
		}
		if _, err := relay.open(func(c *net.TCPConn) { relayTo(c, port) }); err != nil {
			return err
		}
	}
	forwarded, stopForward, err := b.forwardPorts(ctx, target.ports)
	if err != nil {
		return err
	}
	defer stopForward()
	fmt.Println("| | forwarded | relayed | against it |\n|---|--:|--:|--:|")
	for _, row := range []struct {
		name    string
		measure func(port int) (time.Duration, error)
		port    int
	}{{"to the task", sendAll, sinkPort}, {"from the task", receiveAll, sourcePort}, {"one byte there and back", roundTrip, echoPort}} {
		var ours, theirs []time.Duration
		for round := range rounds + 1 {
			a, err := row.measure(forwarded[row.port])
			if err != nil {
				return fmt.Errorf("%s: %w", row.name, err)
			}
			b, err := row.measure(relay.ports[row.port])
			if err != nil {
				return fmt.Errorf("%s, relayed: %w", row.name, err)
			}
			if round > 0 { // the first round warms the caches
				ours, theirs = append(ours, a), append(theirs, b)
			}
		}
		a, b := median(ours), median(theirs)
		if row.port == echoPort {
			fmt.Printf("| %s | %s | %s | %s more |\n", row.name, inMs(a), inMs(b), inMs(a-b))
		} else {
			fmt.Printf("| %s | %s | %s | %.0f%% |\n", row.name, inRate(a), inRate(b), 100*b.Seconds()/a.Seconds())
		}
	}
	return nil
}

// inRate formats the rate at which forwardSize bytes took d.
func inRate(d time.Duration) string {
	return fmt.Sprintf("%.0f MiB/s", float64(forwardSize>>20)/d.Seconds())
}

// localPorts holds ports of this process.
type localPorts struct {
	ports     []int
	listeners []net.Listener
}

// open listens on another port, and serves its connections until close.
func (l *localPorts) open(serve func(*net.TCPConn)) (port int, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port = listener.Addr().(*net.TCPAddr).Port
	l.listeners, l.ports = append(l.listeners, listener), append(l.ports, port)
	go func() { // ends with the listener
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c.(*net.TCPConn))
			}()
		}
	}()
	return port, nil
}

func (l *localPorts) close() {
	for _, listener := range l.listeners {
		_ = listener.Close()
	}
}

// relayTo copies between a connection and a port in both directions with half-close, and without splicing.
func relayTo(near *net.TCPConn, port int) {
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

// chunk is the size of reads and writes, in bytes.
const chunk = 128 << 10

// discard reads until the end. It does not splice, because a program that uses the data could not either.
func discard(c net.Conn) (total int64, err error) {
	for buffer := make([]byte, chunk); ; {
		n, err := c.Read(buffer)
		total += int64(n)
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

func sendZeros(c net.Conn) error {
	buffer := make([]byte, chunk)
	for range forwardSize / chunk {
		if _, err := c.Write(buffer); err != nil {
			return err
		}
	}
	return nil
}

func dialPort(port int) (*net.TCPConn, error) {
	c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// sendAll returns how long it takes until a sink has received everything.
func sendAll(port int) (time.Duration, error) {
	c, err := dialPort(port)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	began := time.Now()
	if err := errors.Join(sendZeros(c), c.CloseWrite()); err != nil {
		return 0, err
	}
	var got int64
	if _, err := fmt.Fscanln(c, &got); err != nil || got != forwardSize {
		return 0, fmt.Errorf("the sink has %d bytes: %w", got, err)
	}
	return time.Since(began), nil
}

// receiveAll returns how long it takes until a source has sent everything.
func receiveAll(port int) (time.Duration, error) {
	c, err := dialPort(port)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	began := time.Now()
	if got, err := discard(c); err != nil || got != forwardSize {
		return 0, fmt.Errorf("the source has sent %d bytes: %w", got, err)
	}
	return time.Since(began), nil
}

// roundTrip returns the median round-trip time of one byte.
func roundTrip(port int) (time.Duration, error) {
	c, err := dialPort(port)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	took := make([]time.Duration, forwardTrips)
	var one [1]byte
	for i := range took {
		began := time.Now()
		if _, err := c.Write(one[:]); err != nil {
			return 0, err
		}
		if _, err := io.ReadFull(c, one[:]); err != nil {
			return 0, err
		}
		took[i] = time.Since(began)
	}
	return median(took), nil
}

// forwardPorts starts `runs port-forward` for ports of the task, and returns the local ports.
func (b *sessionBench) forwardPorts(ctx context.Context, ports []int) (local [targetPorts]int, stop func(), err error) {
	args := []string{"runs", "port-forward", b.run, enteredTask}
	for _, port := range ports {
		args = append(args, fmt.Sprintf("0:%d", port))
	}
	p, err := startProcess(ctx, b.dir, "127.0.0.1:", nil, b.binary, b.command(args...)...)
	if err != nil {
		return local, nil, err
	}
	for i := range local {
		line, err := p.Line(ctx, p.Stdout, fmt.Sprintf("-> %d\n", ports[i]))
		if err != nil {
			return local, nil, errors.Join(err, p.Kill())
		}
		address, _, _ := strings.Cut(line, " ")
		_, port, _ := net.SplitHostPort(address)
		if local[i], err = strconv.Atoi(port); err != nil {
			return local, nil, errors.Join(err, p.Kill())
		}
	}
	return local, func() { end(p) }, nil
}
