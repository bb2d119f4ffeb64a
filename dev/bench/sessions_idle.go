package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"switchyard/activities/executor"
	"switchyard/dev/processes"
)

const (
	// idleSessions is the number of open sessions.
	idleSessions = 500
	// openAtOnce is the number of sessions that are opened concurrently.
	openAtOnce = 16
	// quietTime is how long the sessions stay idle before the measurement.
	quietTime = 45 * time.Second
)

// idle measures the cost of idle sessions for a gateway: programs that wait for input, each in the session of a client
// of its own. It runs a single round.
func (b *sessionBench) idle(ctx context.Context, _ int) error {
	before, err := b.footprint(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	open, err := b.openIdle(ctx)
	defer func() {
		for _, s := range open {
			s.end()
		}
	}()
	if err != nil {
		return err
	}
	opened := time.Since(began)
	if err := processes.Pause(ctx, quietTime); err != nil {
		return err
	}
	after, err := b.footprint(ctx)
	if err != nil {
		return err
	}
	for _, s := range open {
		if err := s.echo(); err != nil {
			return fmt.Errorf("a session that was idle for %s: %w", quietTime, err)
		}
	}
	fmt.Printf("%d idle sessions, opened in %.1f s: %.0f MiB more heap and stacks in the gateway, which has %d MiB; %d MiB more in the worker\n",
		idleSessions, opened.Seconds(), after.inUse-before.inUse, after.gateway, after.worker-before.worker)
	return nil
}

// idleSession is a session with `cat`.
type idleSession struct {
	end   func()
	echo  func() error
	ended sync.WaitGroup
}

// openIdle opens all sessions and waits until each has echoed a line.
func (b *sessionBench) openIdle(ctx context.Context) ([]*idleSession, error) {
	var mu sync.Mutex
	var open []*idleSession
	var errs []error
	var opening sync.WaitGroup
	room := make(chan struct{}, openAtOnce)
	for range idleSessions {
		room <- struct{}{}
		opening.Go(func() {
			defer func() { <-room }()
			s := b.openCat(ctx)
			err := s.echo()
			mu.Lock()
			defer mu.Unlock()
			open, errs = append(open, s), append(errs, err)
		})
	}
	opening.Wait()
	return open, errors.Join(errs...)
}

// openCat runs `cat` in the task.
func (b *sessionBench) openCat(ctx context.Context) *idleSession {
	ctx, cancel := context.WithCancel(ctx)
	sessions := b.client.Sessions()
	stdin, input := io.Pipe()
	output, stdout := io.Pipe()
	s := &idleSession{}
	s.ended.Go(func() {
		status, err := b.inside(sessions).Exec(ctx, executor.Command{Args: []string{"cat"}, Stdin: stdin, Stdout: stdout, Stderr: io.Discard})
		if err == nil {
			err = fmt.Errorf("cat has ended with exit code %d", status.Code)
		}
		_ = stdout.CloseWithError(err)
		_ = stdin.CloseWithError(err)
	})
	s.end = func() {
		_ = input.Close()
		_ = output.Close()
		cancel()
		s.ended.Wait()
		sessions.Close()
	}
	lines := bufio.NewReaderSize(output, 16)
	s.echo = func() error {
		if _, err := io.WriteString(input, "x\n"); err != nil {
			return err
		}
		got, err := lines.ReadString('\n')
		if err == nil && got != "x\n" {
			err = fmt.Errorf("cat has written %q", got)
		}
		return err
	}
	return s
}

// footprint holds memory in MiB.
type footprint struct {
	inUse           float64 // heap and stacks of the gateway
	gateway, worker int     // resident
}

// footprint returns the memory of gateway and worker after the gateway has collected its garbage.
func (b *sessionBench) footprint(ctx context.Context) (f footprint, err error) {
	first, err := b.figures(ctx)
	if err != nil {
		return f, err
	}
	figures := first
	// The requests themselves produce garbage until a collection starts.
	for figures["go_memstats_last_gc_time_seconds"] == first["go_memstats_last_gc_time_seconds"] {
		if figures, err = b.figures(ctx); err != nil {
			return f, err
		}
	}
	f.inUse = (figures["go_memstats_heap_alloc_bytes"] + figures["go_memstats_stack_inuse_bytes"]) / (1 << 20)
	f.gateway, err = memory(b.gateway, "VmRSS")
	if err != nil {
		return f, err
	}
	f.worker, err = memory(b.worker, "VmRSS")
	return f, err
}

// figures returns the gateway's metrics without labels.
func (b *sessionBench) figures(ctx context.Context) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.client.URL()+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET /metrics: %s", res.Status)
	}
	figures := map[string]float64{}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if value, err := strconv.ParseFloat(text, 64); err == nil {
			figures[name] = value
		}
	}
	if figures["go_goroutines"] == 0 {
		return nil, errors.New("GET /metrics has no figures of Go")
	}
	return figures, lines.Err()
}
