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

// endings records why containers end, from the engine's event stream: an engine reports
// each signal that it sends to a container, before the end of that container. A status
// alone cannot say whether a program ended by itself or because its engine shuts down.
//
// One connection serves all containers. After a cut, the engine repeats what was missed:
// it remembers its latest events (Docker: 256) until its process ends.
type endings struct {
	engine *engine
	cancel context.CancelFunc
	done   chan struct{}

	mu sync.Mutex
	// of has the containers that are watched, by their ids.
	of   map[string]ending
	news chan struct{} // closed when of changes
	// cut ends the connection; nil when there is none.
	cut func()
}

// ending is what the engine has reported of a container.
type ending struct {
	// killed says that the engine has sent it a signal that is to end it.
	killed      bool
	outOfMemory bool
	died        bool
	// starts is how often it has started while it was watched; the rest is of the time since the last.
	starts int
}

// isExplained reports whether it is known why a container that has ended did so.
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

// run keeps the connection.
func (s *endings) run(ctx context.Context) {
	defer close(s.done)
	for since := time.Now(); ctx.Err() == nil && s.engine.await(ctx) == nil; {
		again, begun := pingEvery, time.Now()
		if s.follow(ctx, since) {
			again, since = pingAgain, begun
			s.engine.ask()
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

// follow records events until the connection ends. It reports whether there was one.
func (s *endings) follow(ctx context.Context, since time.Time) bool {
	filter, err := filters.ToJSON(filters.NewArgs(filters.Arg("type", string(events.ContainerEventType)), filters.Arg("label", labelID)))
	if err != nil {
		return false
	}
	query := url.Values{"since": {strconv.FormatInt(since.Unix(), 10)}, "filters": {filter}}
	// No version of the API: the client may be negotiating it at this moment.
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
		e = ending{starts: e.starts + 1}
	case events.ActionDie:
		e.died = true
	case events.ActionOOM:
		e.outOfMemory = true
	case events.ActionKill:
		// Programs take other signals for something else than to end.
		switch n, _ := strconv.Atoi(m.Actor.Attributes["signal"]); syscall.Signal(n) {
		case syscall.SIGTERM, syscall.SIGKILL:
			e.killed = true
		}
	}
	s.of[m.Actor.ID] = e
	close(s.news)
	s.news = make(chan struct{})
}

// watch starts recording the events of a container, and forget ends it.
func (s *endings) watch(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[id] = ending{}
}

func (s *endings) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, id)
}

// get returns what is known of a container.
func (s *endings) get(id string) ending {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[id]
}

// await waits until what is known of a container meets a condition, and reports whether
// it does. It gives up after patience or with ctx.
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

// eventPatience is how long an event may be on its way. After that the connection is
// taken to be dead.
const eventPatience = time.Second

// explain waits until it is known why a container that has ended did so, or that it has started again after so many starts. It
// reports whether it is: the engine may have been away meanwhile, or may report no events.
func (s *endings) explain(ctx context.Context, id string, starts int) bool {
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
