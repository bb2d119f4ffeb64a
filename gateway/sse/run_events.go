package sse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"buf.build/go/protovalidate"
	"connectrpc.com/connect"

	"switchyard/gateway/eventstream"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runevents"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// answerTime is how long a client waits for a run that does not answer.
	answerTime = 10 * time.Second
	// validationsAtOnce is the number of clients whose ids are validated concurrently.
	validationsAtOnce = 4
)

// startEvent is the name of the event for a start that only the heartbeat of the attempt reports so far.
const startEvent = v1.TaskRunning

// endSuffix follows the generation in the id of an end event.
const endSuffix = "-end"

// endData is the data of the end event of a run.
type endData struct {
	Run        string `json:"run"`
	Generation int32  `json:"generation"`
	State      string `json:"state"`
	Reason     string `json:"reason"`
	Error      string `json:"error"`
}

// endFrame returns the end event of a run.
func endFrame(run *v1.Run) []byte {
	data, _ := json.Marshal(endData{run.GetId(), run.GetGeneration(), run.GetState(), run.GetReason(), run.GetError()}) // strings and a number cannot fail
	return eventstream.Frame(endEvent, strconv.Itoa(int(run.GetGeneration()))+endSuffix, data)
}

// parseEnd returns the generation in the id of an end event.
func parseEnd(id string) (generation int32, ok bool) {
	text, ok := strings.CutSuffix(id, endSuffix)
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), ok && err == nil && n >= 0
}

// eventRequest returns the event filter in the parameters of a stream.
func eventRequest(p *parameters) *v1.ListRunEventsRequest {
	return &v1.ListRunEventsRequest{
		Task: p.text("task"), Event: p.text("event"), Node: p.text("node"), Since: p.time("since"), Until: p.time("until"),
	}
}

// runEvents serves a stream of the events of a run, which ends with the run.
func (h *Handler) runEvents(ctx context.Context, w http.ResponseWriter, r *http.Request, s *eventstream.Stream, path pathValues) error {
	p := newParameters(r)
	p.flag(followParameter, true)
	req, last := eventRequest(p), p.lastEventID(r)
	if err := p.finish(); err != nil {
		return err
	}
	if err := protovalidate.Validate(req); err != nil {
		return rpcerror.Invalid("%w", rpcerror.ExplainRules(err))
	}
	filter, err := runevents.NewFilter(req)
	if err != nil {
		return err
	}
	var at runevents.Position
	ended, isEnd := parseEnd(last)
	switch {
	case isEnd:
		at = runevents.GenerationStart(ended + 1)
	case last != "":
		if at, err = runevents.ParsePosition(last); err != nil {
			return err
		}
	}
	id, err := h.Index.Resolve(ctx, path.run)
	if err != nil {
		return err
	}
	poller, leave := h.Pollers.Watch(id)
	defer leave()
	if err := h.awaitFirst(ctx, id, poller); err != nil {
		return err
	}
	var subject runevents.Subject
	over := false // the client has already received every event
	if err := poller.Check(func(v *runview.View) error {
		subject = runevents.SubjectOf(v)
		over = isEnd && v.Run.GetGeneration() == ended && v1.IsRunTerminal(v.Run.GetState())
		return validateTask(v, req.GetTask())
	}); err != nil {
		return err
	}
	if over {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	feed, release, err := h.followFeed(ctx, id, at, subject)
	if err != nil {
		return err
	}
	defer release()
	if err := s.Begin(); err != nil {
		return err
	}
	f := &runFollower{feed: feed, at: at, filter: filter, out: batch{stream: s}}
	return f.follow(ctx, h.Stopping, subject)
}

// awaitFirst waits until a poller has read its run once.
func (h *Handler) awaitFirst(ctx context.Context, id string, poller *runview.Poller) error {
	patience := time.After(answerTime)
	for {
		n := poller.Since(0)
		switch {
		case n.Done && n.Err != nil:
			return fmt.Errorf("follow run %s: %w", id, n.Err)
		case n.Done, n.Version > 0:
			return nil
		}
		select {
		case <-n.Changed:
		case <-patience:
			return connect.NewError(connect.CodeUnavailable, fmt.Errorf("run %s does not answer; is a control worker up?", id))
		case <-ctx.Done():
			return ctx.Err()
		case <-h.Stopping:
			return errStopping
		}
	}
}

// validateTask returns an error if the run can have no task or instance with the given name.
func validateTask(v *runview.View, name string) error {
	if name == "" || v.Tasks[name] != nil {
		return nil
	}
	task, index, ok := names.ParseInstanceName(name)
	t := v.Tasks[task]
	if !ok || t == nil {
		return v.NoTask(name)
	}
	if count := t.Task.Count; count != nil && index >= int(*count) {
		return rpcerror.NotFound("task %s of run %s has no instance %d; it has %d", task, v.Run.GetId(), index, *count)
	}
	return nil
}

// followFeed returns the feed of a run for a follower at a position. The error is InvalidArgument if the run has no event
// before the position. If many clients reconnect at once, only the first needs the validation.
func (h *Handler) followFeed(ctx context.Context, id string, at runevents.Position, subject runevents.Subject) (*runFeed, func(), error) {
	if feed, release := h.feeds.followKnown(id, at); feed != nil {
		return feed, release, nil
	}
	select {
	case h.validations <- struct{}{}:
		defer func() { <-h.validations }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case <-h.Stopping:
		return nil, nil, errStopping
	}
	if feed, release := h.feeds.followKnown(id, at); feed != nil {
		return feed, release, nil
	}
	if err := h.Events.Tail(at).Validate(ctx, subject); err != nil {
		return nil, nil, err
	}
	feed, release := h.feeds.follow(id, at)
	return feed, release, nil
}

// runFollower sends the events of a feed to one client.
type runFollower struct {
	feed   *runFeed
	tail   *runevents.Tail // reads events that the feed no longer keeps, or nil while the feed keeps them all
	at     runevents.Position
	filter *runevents.Filter
	out    batch
}

// follow sends events until the run has ended.
func (f *runFollower) follow(ctx context.Context, stopping <-chan struct{}, subject runevents.Subject) error {
	place, joined := f.feed.join(f.at)
	for {
		if !joined {
			if err := f.catchUp(ctx, f.feed.current(subject)); err != nil {
				return err
			}
			place, joined = f.feed.join(f.at)
		}
		news := f.feed.since(place)
		if news.lost {
			f.tail, joined = nil, false
		}
		for _, e := range news.entries {
			if err := f.sendEntry(e, place); err != nil {
				return err
			}
			place.next++
		}
		if joined && place.next >= place.head {
			for _, e := range place.starts {
				if err := f.sendStart(e); err != nil {
					return err
				}
			}
			place.starts = nil
		}
		if joined && news.end != nil {
			if news.end.GetGeneration() < f.at.Generation() {
				return errRetried
			}
			if err := f.out.add(endFrame(news.end)); err != nil {
				return err
			}
			return f.out.flush()
		}
		if err := f.out.flush(); err != nil {
			return err
		}
		switch {
		case news.done && news.err != nil:
			return f.feedError(news.err, stopping)
		case !joined && news.lost:
			continue
		}
		select {
		case <-news.changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-stopping:
			return errStopping
		}
	}
}

// errRetried ends a stream if the run has just started a new generation.
var errRetried = connect.NewError(connect.CodeUnavailable, errors.New("the run has been retried"))

// feedError returns the error of a stream after its feed has ended with err.
func (f *runFollower) feedError(err error, stopping <-chan struct{}) error {
	select {
	case <-stopping:
		return errStopping
	default:
		return fmt.Errorf("follow the events of run %s: %w", f.feed.id, err)
	}
}

// catchUp sends the events between the position of the follower and the first event that the feed keeps.
func (f *runFollower) catchUp(ctx context.Context, subject runevents.Subject) error {
	if f.tail == nil {
		f.tail = f.feed.events.Tail(f.at)
	}
	err := f.tail.Read(ctx, subject, func(e *v1.Event, after runevents.Position) error {
		f.at = after
		if !f.filter.Wants(e) {
			return nil
		}
		entry, err := newEntry(e, after)
		if err != nil {
			return err
		}
		return f.out.add(entry.frame)
	})
	f.at = f.tail.Position()
	return err
}

// sendEntry sends an entry of the feed unless the client has already received it.
func (f *runFollower) sendEntry(e *feedEntry, place feedPlace) error {
	if e.isStart() {
		if place.next < place.head {
			return nil // place.starts has those that are still running
		}
		return f.sendStart(e)
	}
	if f.at.IsPast(e.event) {
		return nil
	}
	text := e.frame
	if e.at.Covers(f.at) {
		f.at = e.at
	} else {
		// The client has received events of other parts that the feed read later.
		f.at = f.at.After(e.event)
		own, err := newEntry(e.event, f.at)
		if err != nil {
			return err
		}
		text = own.frame
	}
	if !f.filter.Wants(e.event) {
		return nil
	}
	return f.out.add(text)
}

func (f *runFollower) sendStart(e *feedEntry) error {
	if !f.filter.Wants(e.event) {
		return nil
	}
	return f.out.add(e.frame)
}
