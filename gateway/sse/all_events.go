package sse

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"buf.build/go/protovalidate"

	"switchyard/gateway/auth"
	"switchyard/gateway/eventstream"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runevents"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// gapEvent is the name of the event that reports omitted events.
	gapEvent = "gap"
	// maxReplay is how far back a stream of the events of all runs can resume.
	maxReplay = time.Hour
	// replaysAtOnce is the number of clients that may replay past events concurrently.
	replaysAtOnce = 2
)

// allID is the id of an event in a stream of all runs: a number in a feed, and a time before which every event has been
// sent. Another gateway, or a later feed, resumes from that time.
type allID struct {
	feed     string
	number   int64
	complete time.Time
}

// noFeed is the feed name in the ids of events that no feed has published.
const noFeed = "0"

func (id allID) text() string {
	return fmt.Sprintf("%s-%d-%d", id.feed, id.number, id.complete.UnixMilli())
}

func parseAllID(text string) (allID, error) {
	parts := strings.Split(text, "-")
	if len(parts) == 3 {
		number, err := strconv.ParseInt(parts[1], 10, 64)
		at, timeErr := strconv.ParseInt(parts[2], 10, 64)
		id := allID{parts[0], number, time.UnixMilli(at)}
		if err == nil && timeErr == nil && id.text() == text && id.complete.Before(time.Now().Add(lag)) {
			return id, nil
		}
	}
	return allID{}, rpcerror.Invalid("%q is not an event id of a stream of all runs; resume with an id that the stream has sent", text)
}

// gapData is the data of a gap event. Events between Since and Until have been omitted.
type gapData struct {
	Since  string `json:"since"`
	Until  string `json:"until"`
	Reason string `json:"reason"`
}

// allEvents serves a stream of the events of all runs.
func (h *Handler) allEvents(ctx context.Context, _ http.ResponseWriter, r *http.Request, s *eventstream.Stream, _ pathValues) error {
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
	f := &allFollower{caller: auth.From(ctx), feed: h.all, replays: h.replays, filter: filter, out: batch{stream: s}}
	var from time.Time
	since := req.GetSince().AsTime()
	switch {
	case last != "":
		id, err := parseAllID(last)
		if err != nil {
			return err
		}
		f.seen, from = id, id.complete.Add(-lag)
	case req.GetSince() != nil && since.Before(time.Now().Add(-maxReplay)):
		return rpcerror.Invalid("since (%s) is too old; a stream of all runs begins at most %s ago; GET /v1/events without follow lists older events", since.Format(time.RFC3339), maxReplay)
	case req.GetSince() != nil:
		from = since
	}
	release := h.all.follow()
	defer release()
	if err := s.Begin(); err != nil {
		return err
	}
	return f.follow(ctx, h.Stopping, from)
}

// allFollower sends the events of all runs to one client.
type allFollower struct {
	caller  *auth.Principal
	feed    *allFeed
	replays chan struct{}
	filter  *runevents.Filter
	seen    allID // last id that the client has received
	out     batch
}

// follow sends events until the client disconnects. If from is not zero, it first replays the events since then that the
// feed no longer keeps.
func (f *allFollower) follow(ctx context.Context, stopping <-chan struct{}, from time.Time) error {
	if !f.feed.keeps(f.seen) {
		if err := f.replay(ctx, stopping, from); err != nil {
			return err
		}
	}
	for {
		entries, kept, changed := f.feed.after(f.seen.number)
		if !kept {
			// The client has fallen behind the feed.
			if err := f.replay(ctx, stopping, f.seen.complete.Add(-lag)); err != nil {
				return err
			}
			continue
		}
		for _, e := range entries {
			f.seen.number++
			if !f.caller.Reaches(e.owner) || !f.filter.Wants(e.event) {
				continue
			}
			if err := f.out.add(e.frame); err != nil {
				return err
			}
		}
		if err := f.out.flush(); err != nil {
			return err
		}
		if len(entries) > 0 {
			f.seen.complete = f.feed.head().complete
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-stopping:
			return errStopping
		}
	}
}

// replay sends the events between from and now, or none if from is zero.
func (f *allFollower) replay(ctx context.Context, stopping <-chan struct{}, from time.Time) error {
	f.seen = f.feed.head()
	if from.IsZero() {
		return nil
	}
	if time.Since(from) > maxReplay+2*lag {
		return f.sendGap(from, "the events are too old to be replayed")
	}
	select {
	case f.replays <- struct{}{}:
		defer func() { <-f.replays }()
	case <-ctx.Done():
		return ctx.Err()
	case <-stopping:
		return errStopping
	}
	id := allID{feed: noFeed, complete: from.Add(lag)}.text()
	f.seen = f.feed.head()
	err := f.feed.read(ctx, from, func(e *v1.Event) error {
		if !f.filter.Wants(e) {
			return nil
		}
		data, err := marshalMessage(e)
		if err != nil {
			return err
		}
		return f.out.add(eventstream.Frame(e.GetEvent(), id, data))
	}, func(run string, err error) {
		f.feed.log.Debug("cannot replay the events of a run", "run", run, "error", err)
	})
	return cmp.Or(err, f.out.flush())
}

// sendGap reports that the events between from and now are omitted.
func (f *allFollower) sendGap(from time.Time, reason string) error {
	data, err := json.Marshal(gapData{from.UTC().Format(time.RFC3339Nano), time.Now().UTC().Format(time.RFC3339Nano), reason})
	if err != nil {
		return err
	}
	if err := f.out.add(eventstream.Frame(gapEvent, f.seen.text(), data)); err != nil {
		return err
	}
	return f.out.flush()
}

// longestUnseen returns the n runs that have not been read for the longest time, or fewer.
func longestUnseen(due []string, runs map[string]*followedRun, n int) []string {
	slices.SortStableFunc(due, func(a, b string) int { return runs[a].looked.Compare(runs[b].looked) })
	return due[:min(n, len(due))]
}
