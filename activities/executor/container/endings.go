package container

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
)

// endings records why containers end, based on the engine's event stream. An engine reports each signal that it sends to a
// container before it reports the end of that container. The exit status alone does not reveal whether a program ended by
// itself or because its engine shuts down.
//
// One connection serves all containers. After an interruption, the engine replays missed events: it remembers its latest
// events (Docker: 256) until its process ends.
type endings struct {
	engine *engine
	cancel context.CancelFunc
	done   chan struct{}

	mu sync.Mutex
	// of holds the watched containers by id.
	of   map[string]ending
	news chan struct{} // closed when of changes
	// cut closes the connection. It is nil without a connection.
	cut func()
}

// ending is what the engine has reported about a container.
type ending struct {
	// stopSignal is the signal, besides SIGTERM and SIGKILL, with which the engine ends the container.
	stopSignal syscall.Signal
	// killed reports that the engine sent the container a signal that is meant to end it.
	killed      bool
	outOfMemory bool
	died        bool
	// starts counts the starts while the container was watched. The other fields cover the time since the last start.
	starts int
}

// isExplained reports whether the reason for the end of the container is known.
func (e ending) isExplained() bool { return e.killed || e.died }

func watchEndings(engine *engine) *endings {
	ctx, cancel := context.WithCancel(context.Background())
	s := &endings{
		engine: engine, cancel: cancel, done: make(chan struct{}), of: map[string]ending{}, news: make(chan struct{}),
	}
	go s.run(ctx)
	return s
}

func (s *endings) close() {
	s.cancel()
	<-s.done
}

// run keeps a connection to the event stream open.
func (s *endings) run(ctx context.Context) {
	defer close(s.done)
	for since := time.Now(); ctx.Err() == nil && s.engine.await(ctx) == nil; {
		again, begun := pingEvery, time.Now()
		if s.follow(ctx, since) {
			again, since = pingAgain, begun
			s.engine.requestPing()
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

// follow records events until the connection ends. It reports whether a connection was established.
func (s *endings) follow(ctx context.Context, since time.Time) bool {
	filter, err := filters.ToJSON(filters.NewArgs(filters.Arg("type", string(events.ContainerEventType)), filters.Arg("label", labelID)))
	if err != nil {
		return false
	}
	query := url.Values{"since": {strconv.FormatInt(since.Unix(), 10)}, "filters": {filter}}
	// The path has no API version, since the client may just be negotiating it.
	guarded, release := s.engine.guard(ctx)
	conn, _, res, err := s.engine.call(guarded, http.MethodGet, "/events?"+query.Encode(), nil, nil)
	release()
	if err != nil {
		return false
	}
	defer conn.Close()
	if res.StatusCode != http.StatusOK {
		return false
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	s.setCut(func() { conn.Close() })
	defer s.setCut(nil)
	for stream := json.NewDecoder(res.Body); ; {
		var m events.Message
		if stream.Decode(&m) != nil {
			return true
		}
		s.record(m)
	}
}

func (s *endings) setCut(cut func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = cut
}

func (s *endings) record(m events.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, watched := s.of[m.Actor.ID]
	if !watched {
		return
	}
	switch m.Action {
	case events.ActionStart:
		e = ending{stopSignal: e.stopSignal, starts: e.starts + 1}
	case events.ActionDie:
		e.died = true
	case events.ActionOOM:
		e.outOfMemory = true
	case events.ActionKill:
		// Programs use other signals for purposes other than ending.
		switch n, _ := strconv.Atoi(m.Actor.Attributes["signal"]); syscall.Signal(n) {
		case syscall.SIGTERM, syscall.SIGKILL, e.stopSignal:
			e.killed = true
		}
	}
	s.of[m.Actor.ID] = e
	close(s.news)
	s.news = make(chan struct{})
}

// watch starts recording the events of a container, which the engine ends with a signal; forget stops it.
func (s *endings) watch(id string, stopSignal syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[id] = ending{stopSignal: stopSignal}
}

func (s *endings) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, id)
}

// get returns what is known about a container.
func (s *endings) get(id string) ending {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[id]
}

// await waits until what is known about a container meets a condition, and returns true. It returns false after patience or
// when ctx ends.
func (s *endings) await(ctx context.Context, id string, patience time.Duration, is func(ending) bool) bool {
	late := time.After(patience)
	for {
		s.mu.Lock()
		e, news := s.of[id], s.news
		s.mu.Unlock()
		if is(e) {
			return true
		}
		select {
		case <-news:
		case <-late:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// eventPatience is how long an event may be delayed. After that, the connection counts as dead.
const eventPatience = time.Second

// awaitExplanation waits until the reason for the end of a container is known, or the container has started again since starts was
// read. It returns false if that does not happen: the engine may have been away meanwhile, or may not report events.
func (s *endings) awaitExplanation(ctx context.Context, id string, starts int) bool {
	isKnown := func(e ending) bool { return e.isExplained() || e.starts != starts }
	if s.await(ctx, id, eventPatience, isKnown) {
		return true
	}
	s.mu.Lock()
	if s.cut != nil {
		s.cut()
	}
	s.mu.Unlock()
	return s.await(ctx, id, pingPatience, isKnown)
}
