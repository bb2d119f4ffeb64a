package web

import (
	"context"
	"sync"
	"time"

	"connectrpc.com/connect"

	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

const (
	// firstCounts is how long a new list of runs waits for the task counts.
	firstCounts = 200 * time.Millisecond
	// countsAge is the maximum age of the counts of an open run.
	countsAge = 2 * time.Second
)

// runCounts reads the task counts and errors of listed runs, which the list call leaves out. It reads them in the
// background, one run at a time, with pauses. want and row are for a single goroutine.
type runCounts struct {
	runs   switchyardv1connect.RunServiceClient
	cancel context.CancelFunc
	wg     sync.WaitGroup
	wake   chan struct{}
	first  chan struct{} // closed when all runs of the first list have been read
	opened time.Time

	mu     sync.Mutex
	wanted []*v1.Run
	known  map[string]knownCounts
}

// knownCounts holds the counts of a run.
type knownCounts struct {
	generation int32
	ended      bool
	at         time.Time
	bars       []countBar
	err        string // error of the run, which lists leave out
}

// countBar is a bar of the tasks or instances of a run by state.
type countBar struct {
	Noun  string // "task" or "instance"
	Total int
	Parts []countPart
}

// countPart is the number of tasks or instances in a state.
type countPart struct {
	State string
	N     int
	// X and Width place the part in a bar of width 100.
	X, Width float64
}

// newRunCounts starts reading the counts of runs in the name of the caller. The caller must call close.
func newRunCounts(runs switchyardv1connect.RunServiceClient, req request) *runCounts {
	ctx, cancel := context.WithCancel(req.callerContext(context.Background()))
	c := &runCounts{runs: runs, cancel: cancel, wake: make(chan struct{}, 1), first: make(chan struct{}), known: map[string]knownCounts{}}
	c.wg.Go(func() { c.read(ctx) })
	return c
}

func (c *runCounts) close() {
	c.cancel()
	c.wg.Wait()
}

// setRuns sets the listed runs. The first call waits up to firstCounts for their counts.
func (c *runCounts) setRuns(runs []*v1.Run) {
	c.mu.Lock()
	isFirst := c.wanted == nil
	c.wanted = append([]*v1.Run{}, runs...)
	kept := make(map[string]knownCounts, len(runs))
	for _, run := range runs {
		if known, ok := c.known[run.GetId()]; ok {
			kept[run.GetId()] = known
		}
	}
	c.known = kept
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	if isFirst && len(runs) > 0 {
		select {
		case <-c.first:
		case <-time.After(firstCounts):
		}
	}
}

// row returns the row of a run, without counts and error while they are unknown.
func (c *runCounts) row(run *v1.Run) runRow {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.known[run.GetId()]
	row := runRow{run, known.bars}
	if run.GetError() == "" && known.generation == run.GetGeneration() && known.ended == v1.IsRunTerminal(run.GetState()) {
		row.Error = known.err
	}
	return row
}

// read reads the counts of the wanted runs until ctx is cancelled.
func (c *runCounts) read(ctx context.Context) {
	closeFirst := sync.OnceFunc(func() { close(c.first) })
	defer closeFirst()
	isFirst := true
	for {
		select {
		case <-c.wake:
		case <-ctx.Done():
			return
		}
		for run := c.nextStale(); run != nil; run = c.nextStale() {
			began := time.Now()
			if !c.readRun(ctx, run) {
				return
			}
			if !isFirst {
				if sleep(ctx, pauseAfter(time.Since(began), 0)) != nil {
					return
				}
			}
		}
		isFirst = false
		closeFirst()
	}
}

// nextStale returns the wanted run whose counts are the most outdated, or nil if all counts are recent enough.
func (c *runCounts) nextStale() *v1.Run {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found *v1.Run
	var at time.Time
	for _, run := range c.wanted {
		known, ok := c.known[run.GetId()]
		switch {
		case !ok || known.generation != run.GetGeneration() || !known.ended && v1.IsRunTerminal(run.GetState()):
			return run
		case known.ended || time.Since(known.at) < countsAge:
		case found == nil || known.at.Before(at):
			found, at = run, known.at
		}
	}
	return found
}

// readRun reads the counts of a run. If that fails, it keeps the known counts. It returns false if ctx was cancelled.
func (c *runCounts) readRun(ctx context.Context, run *v1.Run) bool {
	res, err := c.runs.GetRun(ctx, connect.NewRequest(&v1.GetRunRequest{Id: run.GetId(), PageSize: 1, Brief: true}))
	if ctx.Err() != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known := knownCounts{generation: run.GetGeneration(), ended: v1.IsRunTerminal(run.GetState()), at: time.Now(), bars: c.known[run.GetId()].bars, err: c.known[run.GetId()].err}
	if err == nil {
		known.bars, known.err = countBars(res.Msg.GetRun()), res.Msg.GetRun().GetError()
	}
	c.known[run.GetId()] = known
	return true
}

// countBars returns the bars of a run: one of its tasks, and one of the instances if any.
func countBars(run *v1.Run) []countBar {
	var bars []countBar
	for _, of := range []struct {
		noun   string
		counts map[string]int32
	}{{"task", run.GetTaskCounts()}, {"instance", run.GetInstanceCounts()}} {
		bar := countBar{Noun: of.noun}
		for _, n := range of.counts {
			bar.Total += int(n)
		}
		x := 0.0
		for _, count := range words.StateCounts(of.counts) {
			width := 100 * float64(count.N) / float64(bar.Total)
			bar.Parts = append(bar.Parts, countPart{count.State, count.N, x, width})
			x += width
		}
		if bar.Total > 0 {
			bars = append(bars, bar)
		}
	}
	return bars
}
