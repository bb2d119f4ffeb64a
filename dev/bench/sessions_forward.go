package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
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

// forward compares `runs port-forward` with a relay, alternating between the two. The target is in this process; the
// task uses the host network.
func (b *sessionBench) forward(ctx context.Context, rounds int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	target, err := openTarget()
	if err != nil {
		return err
	}
	defer target.close()
	relayed, name, stop, err := relayPorts(ctx, target.ports)
	if err != nil {
		return err
	}
	defer stop()
	forwarded, stopForward, err := b.forwardPorts(ctx, target.ports)
	if err != nil {
		return err
	}
	defer stopForward()
	ways := []struct {
		name  string
		ports [targetPorts]int
	}{{"`switchyard runs port-forward`", forwarded}, {name, relayed}, {"no relay", target.ports}}
	measures := []struct {
		name    string
		measure func(port int) (time.Duration, error)
		port    int
	}{{"to the task", sendAll, sinkPort}, {"from the task", receiveAll, sourcePort}, {"one byte there and back", roundTrip, echoPort}}
	took := map[[2]int][]time.Duration{}
	for round := range rounds + 1 {
		for m, measure := range measures {
			for w, way := range ways {
				d, err := measure.measure(way.ports[measure.port])
				if err != nil {
					return fmt.Errorf("%s, %s: %w", way.name, measure.name, err)
				}
				if round > 0 { // the first round warms the caches
					took[[2]int{m, w}] = append(took[[2]int{m, w}], d)
				}
			}
		}
	}
	fmt.Printf("%d MiB over one connection, and %d round trips of one byte; to reach: 60%% of socat's throughput, and 1 ms more than its round trip.\n\n", forwardSize>>20, forwardTrips)
	fmt.Printf("| | %s | lowest and highest | against %s |\n|---|--:|--:|--:|\n", "median", name)
	for m, measure := range measures {
		relay := median(took[[2]int{m, 1}])
		for w, way := range ways {
			all := took[[2]int{m, w}]
			middle := median(all)
			if measure.port == echoPort {
				fmt.Printf("| %s, %s | %s | %s to %s | %+d µs |\n", measure.name, way.name, inUs(middle), inUs(slices.Min(all)), inUs(slices.Max(all)), (middle - relay).Microseconds())
				continue
			}
			fmt.Printf("| %s, %s | %s | %s to %s | %.0f%% |\n", measure.name, way.name, inRate(middle), inRate(slices.Max(all)), inRate(slices.Min(all)), 100*relay.Seconds()/middle.Seconds())
		}
	}
	return nil
}

func inUs(d time.Duration) string { return fmt.Sprintf("%d µs", d.Microseconds()) }

// inRate formats the rate at which forwardSize bytes took d.
func inRate(d time.Duration) string {
	return fmt.Sprintf("%.0f MiB/s", float64(forwardSize>>20)/d.Seconds())
}

// forwardTarget serves the ports of a target.
type forwardTarget struct {
	ports     [targetPorts]int
	listeners []net.Listener
}

func openTarget() (*forwardTarget, error) {
	t := &forwardTarget{}
	for i, serve := range [targetPorts]func(net.Conn){
		sinkPort: func(c net.Conn) {
			n, _ := discard(c)
			_, _ = fmt.Fprintln(c, n) // a client that has gone measures nothing
		},
		sourcePort: func(c net.Conn) { _ = sendZeros(c) },
		echoPort: func(c net.Conn) {
			var one [1]byte
			for {
				if _, err := c.Read(one[:]); err != nil {
					return
				}
				if _, err := c.Write(one[:]); err != nil {
					return
				}
			}
		},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.close()
			return nil, err
		}
		t.listeners, t.ports[i] = append(t.listeners, l), l.Addr().(*net.TCPAddr).Port
		go func() { // ends with the listener
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					serve(c)
				}()
			}
		}()
	}
	return t, nil
}

func (t *forwardTarget) close() {
	for _, l := range t.listeners {
		_ = l.Close()
	}
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

// forwardPorts starts `runs port-forward` for ports of the shell task, and returns the local ports.
func (b *sessionBench) forwardPorts(ctx context.Context, ports [targetPorts]int) (local [targetPorts]int, stop func(), err error) {
	args := []string{"runs", "port-forward", b.run, processTask}
	for _, port := range ports {
		args = append(args, fmt.Sprintf("0:%d", port))
	}
	cmd := exec.CommandContext(ctx, b.binary, b.command(args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return local, nil, err
	}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return local, nil, err
	}
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
	lines := bufio.NewScanner(out)
	for i := range local {
		if !lines.Scan() {
			stop()
			return local, nil, fmt.Errorf("port-forward did not start: %s", said.String())
		}
		address, _, _ := strings.Cut(lines.Text(), " ")
		_, port, _ := net.SplitHostPort(address)
		if local[i], err = strconv.Atoi(port); err != nil {
			stop()
			return local, nil, err
		}
	}
	return local, stop, nil
}
