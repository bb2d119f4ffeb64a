package sse

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"
	"unicode/utf8"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"

	"switchyard/gateway/eventstream"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// logEvent is the name of the event for a line of a log, and missingEvent of the event for a missing log.
	logEvent     = "log"
	missingEvent = "missing"
	// positionEvent is the name of an event that carries only an id.
	positionEvent = "position"
)

// logData is the data of a log event: a line, or a piece of one.
type logData struct {
	Task       string `json:"task"`
	Generation int32  `json:"generation"`
	Attempt    int32  `json:"attempt"`
	Stream     string `json:"stream"`
	Time       string `json:"time"`
	// Text is the line without its line end. Invalid UTF-8 is replaced.
	Text string `json:"text"`
	// Bytes is the original line if Text differs from it.
	Bytes []byte `json:"bytes,omitempty"`
	// Partial reports whether the line continues in the next event of the same task, attempt and stream.
	Partial bool `json:"partial"`
	Notice  bool `json:"notice"`
}

// missingData is the data of the event for a missing log.
type missingData struct {
	Task    string `json:"task"`
	Attempt int32  `json:"attempt"`
	Node    string `json:"node"`
	Partial bool   `json:"partial"`
}

// logEnd is the data of the end event of a stream of logs.
type logEnd struct {
	Run  string `json:"run"`
	Task string `json:"task"`
}

// logs serves a stream of the logs of a run or task.
func (h *Handler) logs(ctx context.Context, w http.ResponseWriter, r *http.Request, s *eventstream.Stream, path pathValues) error {
	p := newParameters(r)
	req := &v1.StreamRunLogsRequest{
		Id: path.run, Task: path.task, Attempt: p.number("attempt"), Generation: p.number("generation"),
		Stream: p.text("stream"), Since: p.time("since"), Children: p.flag("children", false),
	}
	if path.task == "" {
		req.Task = p.text("task")
	}
	lines := p.number("tail")
	req.Follow = p.flag(followParameter, !req.Children)
	last := p.lastEventID(r)
	if lines != nil && *lines > maxTail {
		p.fail("parameter tail is %d; it must be at most %d", *lines, maxTail)
	}
	if err := p.finish(); err != nil {
		return err
	}
	cursor, err := parseLogCursor(last)
	if err != nil {
		return err
	}
	if err := protovalidate.Validate(req); err != nil {
		return rpcerror.Invalid("%w", rpcerror.ExplainRules(err))
	}
	if req.Id, err = h.Index.Resolve(ctx, path.run); err != nil {
		return err
	}
	if cursor.ended {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	out := &logSender{cursor: cursor, out: batch{stream: s}}
	if lines != nil && last == "" {
		if err := h.sendTail(ctx, req, out, int(*lines)); err != nil {
			return err
		}
	}
	if req.Follow || lines == nil || last != "" {
		req.Resume = cursor.positions()
		if err := h.Logs(ctx, req, s.Begin, out.send); err != nil {
			return err
		}
	}
	return out.finish(req.GetId(), req.GetTask())
}

// sendTail sends the last lines that each task has printed so far.
func (h *Handler) sendTail(ctx context.Context, req *v1.StreamRunLogsRequest, out *logSender, lines int) error {
	so := proto.CloneOf(req)
	so.Follow = false
	out.tail = newLogTail(lines)
	if err := h.Logs(ctx, so, func() error { return nil }, out.send); err != nil {
		return err
	}
	tail := out.tail
	out.tail = nil
	if err := out.out.stream.Begin(); err != nil {
		return err
	}
	if req.GetFollow() {
		tail.missing = nil // they will be reported again
	}
	if err := tail.send(&out.out); err != nil {
		return err
	}
	// The lines have no ids, so a client that loses the stream among them gets all of them again.
	return out.sendCursor()
}

// logSender sends the messages of a stream of logs as events.
type logSender struct {
	cursor *logCursor
	tail   *logTail // collects the existing output; nil once everything is sent directly
	out    batch
}

// send sends each line of a message as an event.
func (l *logSender) send(m *v1.StreamRunLogsResponse) error {
	if missing := m.GetMissing(); missing != nil {
		data, err := json.Marshal(missingData{missing.GetTask(), missing.GetAttempt(), missing.GetNode(), missing.GetPartial()})
		if err != nil {
			return err
		}
		if err := l.addMissing(eventstream.Frame(missingEvent, "", data)); err != nil {
			return err
		}
	}
	l.cursor.begin(m.GetPosition())
	for _, e := range m.GetEntries() {
		for rest := e.GetData(); len(rest) > 0; {
			line, after, whole := bytes.Cut(rest, []byte("\n"))
			rest = after
			if !l.cursor.advance() {
				continue
			}
			data, err := json.Marshal(newLogData(e, line, whole))
			if err != nil {
				return err
			}
			if err := l.add(e.GetTask(), data); err != nil {
				return err
			}
		}
	}
	l.cursor.finish()
	return l.out.flush()
}

// add sends the event of a line, or adds it to the tail.
func (l *logSender) add(task string, data []byte) error {
	if l.tail != nil {
		return l.tail.add(task, eventstream.Frame(logEvent, "", data))
	}
	return l.out.add(eventstream.Frame(logEvent, l.cursor.text(), data))
}

// addMissing sends the event for a missing log, or adds it to the tail.
func (l *logSender) addMissing(frame []byte) error {
	if l.tail != nil {
		l.tail.missing = append(l.tail.missing, frame)
		return nil
	}
	return l.out.add(frame)
}

// sendCursor sends the current id, at which a client that loses the stream resumes.
func (l *logSender) sendCursor() error {
	if len(l.cursor.at) == 0 {
		return l.out.flush()
	}
	if err := l.out.add(eventstream.Frame(positionEvent, l.cursor.text(), []byte("{}"))); err != nil {
		return err
	}
	return l.out.flush()
}

// newLogData returns the data of a line. whole is false for a piece of a line that continues.
func newLogData(e *v1.LogEntry, line []byte, whole bool) logData {
	d := logData{
		Task: e.GetTask(), Generation: e.GetGeneration(), Attempt: e.GetAttempt(), Stream: e.GetStream(),
		Time: e.GetTime().AsTime().Format(time.RFC3339Nano), Text: string(line), Partial: !whole, Notice: e.GetNotice(),
	}
	if !utf8.Valid(line) {
		d.Text, d.Bytes = string(bytes.ToValidUTF8(line, []byte("\uFFFD"))), line
	}
	return d
}

// finish sends the end event.
func (l *logSender) finish(run, task string) error {
	data, err := json.Marshal(logEnd{run, task})
	if err != nil {
		return err
	}
	if err := l.out.add(eventstream.Frame(endEvent, logEndID, data)); err != nil {
		return err
	}
	return l.out.flush()
}
