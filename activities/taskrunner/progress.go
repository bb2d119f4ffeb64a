package taskrunner

import (
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// announceAfter is how long an attempt waits for something before its heartbeats report the wait.
const announceAfter = time.Second

// progress is what the heartbeats of an attempt report. It is safe for concurrent use.
type progress struct {
	atomic.Pointer[historyv1.ExecuteProgress]
	// news asks for a heartbeat now, because the progress has changed.
	news chan struct{}
}

func newProgress(p *historyv1.ExecuteProgress) *progress {
	pr := &progress{news: make(chan struct{}, 1)}
	pr.Store(p)
	return pr
}

// advance changes the content of the next heartbeat. It may call change more than once, if another goroutine advances it
// at the same time.
func (p *progress) advance(change func(p *historyv1.ExecuteProgress)) {
	for {
		before := p.Load()
		after := proto.CloneOf(before)
		change(after)
		if p.CompareAndSwap(before, after) {
			return
		}
	}
}

// isWaiting reports whether no process has started yet.
func (p *progress) isWaiting() bool { return !p.Load().GetSpawned() }

// beatNow requests an immediate heartbeat.
func (p *progress) beatNow() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// announce adds what the attempt waits for to its heartbeats, unless the wait is short. The caller ends the report by
// calling end.
func (p *progress) announce(what string) (end func()) {
	announced := make(chan struct{})
	timer := time.AfterFunc(announceAfter, func() {
		defer close(announced)
		p.advance(func(e *historyv1.ExecuteProgress) { e.Notice = what })
		p.beatNow()
	})
	return func() {
		if timer.Stop() {
			return
		}
		<-announced
		p.advance(func(e *historyv1.ExecuteProgress) { e.Notice = "" })
	}
}

// showWait makes the heartbeats report what the attempt waits for. An empty text ends the report.
func (p *progress) showWait(text string) {
	if p.Load().GetNotice() == text {
		return
	}
	p.advance(func(e *historyv1.ExecuteProgress) { e.Notice = text })
	p.beatNow()
}
