package sse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"buf.build/go/protovalidate"
	"connectrpc.com/connect"

	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runevents"
	v1 "switchyard/proto/switchyard/v1"
)

// startEvent is the name under which the start of an attempt is sent that only its heartbeat reports so far.
const startEvent = v1.TaskRunning

// endSuffix is what the id of an end event has after the generation that has ended.
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
	data, _ := json.Marshal(endData{run.GetId(), run.GetGeneration(), run.GetState(), run.GetReason(), run.GetError()}) // texts and a number
	return frame(endEvent, strconv.Itoa(int(run.GetGeneration()))+endSuffix, data)
}

// parseEnd returns the generation of the id of an end event.
func parseEnd(id string) (generation int32, ok bool) {
	text, ok := strings.CutSuffix(id, endSuffix)
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), ok && err == nil && n >= 0
}

// eventRequest returns the request for events that the parameters of a stream make.
func eventRequest(p *parameters) *v1.ListRunEventsRequest {
	return &v1.ListRunEventsRequest{
		Task: p.text("task"), Event: p.text("event"), Node: p.text("node"), Since: p.time("since"), Until: p.time("until"),
	}
}

// runEvents sends the events of a run until it has ended.
func (h *Handler) runEvents(ctx context.Context, w http.ResponseWriter, r *http.Request, s *stream, path pathValues) error {
	p := newParameters(r)
	p.flag(followParameter, true)
	req, last := eventRequest(p), p.lastEventID(r)
	if err := p.finish(); err != nil {
		return err
	}
	if err := protovalidate.Validate(req); err != nil {
		return rpcerror.Invalid("%w", err)
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
	v, err := h.Reader.Read(ctx, id)
	if err != nil {
		return err
	}
	if task := req.GetTask(); task != "" {
		if _, err := h.Reader.TaskRef(ctx, v, task); err != nil {
			return err
		}
	}
	if isEnd && v.Run.GetGeneration() == ended && v1.IsRunTerminal(v.Run.GetState()) {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	subject, tail := runevents.SubjectOf(v), h.Events.Tail(at)
	if err := tail.Validate(ctx, subject); err != nil {
		return err
	}
	feed, release := h.feeds.follow(id, at)
	defer release()
	if err := s.begin(); err != nil {
		return err
	}
	f := &runFollower{feed: feed, tail: tail, at: at, filter: filter, out: batch{stream: s}}
	return f.follow(ctx, h.Stopping, subject)
}

// runFollower sends the events of a feed to one client.
type runFollower struct {
	feed   *runFeed
	tail   *runevents.Tail // reads what the feed no longer keeps; nil while the feed keeps everything
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
			return f.ended(news.err, stopping)
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

// errRetried ends a stream whose feed is of a generation that has been followed by another one just now.
var errRetried = connect.NewError(connect.CodeUnavailable, errors.New("the run has been retried"))

// ended returns why a stream ends whose feed has ended with err.
func (f *runFollower) ended(err error, stopping <-chan struct{}) error {
	select {
	case <-stopping:
		return errStopping
	default:
		return fmt.Errorf("follow the events of run %s: %w", f.feed.id, err)
	}
}

// catchUp sends what lies between the position of the follower and what the feed keeps.
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

// sendEntry sends an entry of the feed that the client has not seen yet.
func (f *runFollower) sendEntry(e *feedEntry, place feedPlace) error {
	if e.isStart() {
		if place.next < place.head {
			return nil // place.starts has those that still run
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
		// The client has been sent events of other parts that the feed read later.
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
