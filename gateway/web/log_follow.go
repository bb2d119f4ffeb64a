package web

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"switchyard/gateway/inprocess"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// followInterval is the minimum interval between two updates of a log.
	followInterval = 200 * time.Millisecond
	// longestLogRetry bounds the pause before a log is read again after a failure. The first pause is retryInterval.
	longestLogRetry = 15 * time.Second
	// maxFollowed bounds the rows of an update; the oldest surplus rows are dropped.
	maxFollowed = 1000
)

// logUpdate is the JSON message that updates a log.
type logUpdate struct {
	Version string `json:"version"`
	// Reset tells the page to remove the lines it shows.
	Reset bool     `json:"reset,omitempty"`
	Lines []string `json:"lines"`
	// Dropped is the number of lines dropped before these.
	Dropped int  `json:"dropped,omitempty"`
	Ended   bool `json:"ended,omitempty"`
	// Problem is why the log cannot be read at the moment. The reader tries again.
	Problem string `json:"problem,omitempty"`
}

// encode encodes the update as JSON without escaping HTML, which keeps it short.
func (u *logUpdate) encode() ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(u)
	return bytes.TrimSpace(text.Bytes()), err
}

// logFollower reads a log from the endpoint of server-sent events and sends batches of new rows.
type logFollower struct {
	rows *logRows

	mu      sync.Mutex
	pending *rowBuffer
	version string
	isReset bool
	isNew   bool // whether there is an update to send
	ended   bool
	done    chan struct{} // closed when the reader has ended
	err     error         // why the reader ended
}

// followLog sends the lines of a log since a version, which is an event ID. After a failure that may pass it reads on from
// the last version.
func followLog(ctx context.Context, w *Web, req request, version string, send func(update []byte) error) error {
	pause := retryInterval
	for isFirst := true; ; isFirst = false {
		read, err := w.readLog(ctx, req, version, isFirst, send)
		if err == nil || ctx.Err() != nil || !isTransient(err) {
			return err
		}
		if read != version {
			version, pause = read, retryInterval
		}
		text, encodeErr := (&logUpdate{Version: version, Lines: []string{}, Problem: messageOf(err)}).encode()
		if err := errors.Join(encodeErr, send(text)); err != nil {
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, longestLogRetry)
	}
}

// readLog sends the lines of a log since a version until the log ends or cannot be read. It returns the version that the
// page then has.
func (w *Web) readLog(ctx context.Context, req request, version string, isFirst bool, send func(update []byte) error) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	res, err := w.openLog(ctx, req, version)
	if err != nil {
		return version, err
	}
	if res == nil {
		return version, nil // everything has been sent
	}
	f := &logFollower{
		rows: newLogRows(req.values["task"], "log-"+rand.Text()[:6]+"-"), pending: newRowBuffer(maxFollowed), version: version,
		isReset: version == "", isNew: version == "" || !isFirst, done: make(chan struct{}),
	}
	go func() {
		defer close(f.done)
		f.err = f.read(res.Body)
	}()
	err = f.send(ctx, send)
	cancel()
	_ = res.Body.Close() // ends the reader
	<-f.done
	return f.version, err
}

// openLog opens the stream of a log. It returns nil if everything has been sent.
func (w *Web) openLog(ctx context.Context, req request, version string) (*http.Response, error) {
	query := url.Values{"follow": {"true"}}
	for _, name := range logParameters {
		if value := req.query.Get(name); value != "" {
			query.Set(name, value)
		}
	}
	if version == "" {
		query.Set("tail", strconv.Itoa(logTail))
	}
	address := inprocess.URL + "/v1/runs/" + url.PathEscape(req.values["run"]) + "/tasks/" + url.PathEscape(req.values["task"]) + "/logs?" + query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "text/event-stream")
	if version != "" {
		r.Header.Set("Last-Event-ID", version)
	}
	res, err := inprocess.Client{Handler: w.Streams}.Do(r)
	if err != nil {
		return nil, err
	}
	switch res.StatusCode {
	case http.StatusOK:
		return res, nil
	case http.StatusNoContent:
		return nil, res.Body.Close()
	}
	defer func() { _ = res.Body.Close() }()
	return nil, errorOfAnswer(res)
}

// errorOfAnswer returns the error in a JSON error response.
func errorOfAnswer(res *http.Response) error {
	var body struct {
		Code    connect.Code `json:"code"`
		Message string       `json:"message"`
	}
	text, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err := json.Unmarshal(text, &body); err != nil {
		return fmt.Errorf("the log endpoint returned %s", res.Status)
	}
	return connect.NewError(body.Code, errors.New(body.Message))
}

// send sends updates until the log ends or reading fails.
func (f *logFollower) send(ctx context.Context, send func(update []byte) error) error {
	for {
		isDone := false
		select {
		case <-f.done:
			isDone = true
		case <-time.After(followInterval):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if update := f.takeUpdate(); update != nil {
			text, err := update.encode()
			if err != nil {
				return err
			}
			if err := send(text); err != nil {
				return err
			}
		}
		if isDone {
			return f.err
		}
	}
}

// takeUpdate returns the pending update, or nil if there is none.
func (f *logFollower) takeUpdate() *logUpdate {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isNew {
		return nil
	}
	u := &logUpdate{Version: f.version, Reset: f.isReset, Ended: f.ended}
	u.Lines, u.Dropped = f.pending.drain()
	f.isReset, f.isNew = false, false
	return u
}

// read reads events until the stream ends. It returns nil after the end event.
func (f *logFollower) read(stream io.Reader) error {
	lines := bufio.NewReader(stream)
	var event, id, data string
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return connect.NewError(connect.CodeUnavailable, fmt.Errorf("the stream of the log was interrupted: %w", err))
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "event":
			event = value
		case "id":
			id = value
		case "data":
			data = value
		case "":
			if line != "\n" { // a comment
				continue
			}
			if err := f.applyEvent(event, id, data); err != nil {
				return err
			}
			if event == "end" {
				return nil
			}
			event, id, data = "", "", ""
		}
	}
}

// applyEvent applies an event to the pending update.
func (f *logFollower) applyEvent(event, id, data string) error {
	var rows []logRow
	switch event {
	case "log":
		var l logLine
		if err := json.Unmarshal([]byte(data), &l); err != nil {
			return fmt.Errorf("read a line of a log: %w", err)
		}
		rows = f.rows.add(l)
	case "missing":
		var m struct {
			Task, Node string
			Attempt    int32
			Partial    bool
		}
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			return fmt.Errorf("read a missing-log event: %w", err)
		}
		rows = []logRow{f.rows.note(missingText(&v1.MissingLog{Task: m.Task, Attempt: m.Attempt, Node: m.Node, Partial: m.Partial}))}
	case "end", "position":
	default:
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending.add(rows...)
	f.isNew, f.ended = true, event == "end"
	if id != "" {
		f.version = id
	}
	return nil
}

// missingText returns the notice about a log, or the end of a log, that the store lacks.
func missingText(m *v1.MissingLog) string {
	what := "the log"
	if m.GetPartial() {
		what = "the end of the log"
	}
	return fmt.Sprintf("%s of attempt %d of %s is not in the store; node %s may have it", what, m.GetAttempt(), m.GetTask(), m.GetNode())
}
