package web

import (
	"context"
	"strings"
	"time"

	"connectrpc.com/connect"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// logTail is the number of lines on a newly opened page.
	logTail = 500
	// tailTimeout bounds reading these lines.
	tailTimeout = 5 * time.Second
)

// fillTask replaces the placeholder in a task page by the last lines of the log.
func fillTask(ctx context.Context, w *Web, req request, html string) string {
	if !strings.Contains(html, logMark) {
		return html
	}
	return strings.Replace(html, logMark, w.lastLines(ctx, req), 1)
}

// lastLines returns the last lines of the selected log as rows.
func (w *Web) lastLines(ctx context.Context, req request) string {
	ctx, cancel := context.WithTimeout(ctx, tailTimeout)
	defer cancel()
	task := req.values["task"]
	rows := newLogRows(task, "log-p")
	which, err := logRequest(req.values["run"], task, req.query)
	if err != nil {
		return rows.note(messageOf(err)).html
	}
	res, err := messageOfCall(w.services.runs.ListRunLogs(req.callerContext(ctx), connect.NewRequest(&v1.ListRunLogsRequest{
		Id: which.GetId(), Task: task, Attempt: which.Attempt, Generation: which.Generation, Stream: which.GetStream(), Tail: logTail,
	})))
	if err != nil {
		text := messageOf(err)
		if rpcerror.CodeOf(err) == connect.CodeDeadlineExceeded {
			text = "the log could not be read in time; it can be downloaded"
		}
		if isTransient(err) {
			return rows.failure(text, req.url()).html
		}
		return rows.note(text).html
	}
	shown := newRowBuffer(logTail)
	for _, l := range res.GetItems() {
		shown.add(rows.add(lineOf(l))...)
	}
	for _, m := range res.GetMissing() {
		shown.add(rows.note(missingText(m)))
	}
	lines, _ := shown.drain()
	return strings.Join(lines, "\n")
}

// lineOf converts a log line of the service.
func lineOf(l *v1.LogLine) logLine {
	return logLine{l.GetTask(), l.GetGeneration(), l.GetAttempt(), l.GetStream(), l.GetTime().AsTime(), l.GetText(), l.GetPartial(), l.GetNotice()}
}

// rowBuffer holds the newest rows until they are sent. It is not safe for concurrent use.
type rowBuffer struct {
	most    int
	rows    []logRow
	at      map[string]int // position of each row by id, counted from the first row ever added
	first   int            // position of rows[0]
	dropped int
}

func newRowBuffer(most int) *rowBuffer { return &rowBuffer{most: most, at: map[string]int{}} }

// add appends rows. A row whose id is in the buffer replaces the old row.
func (b *rowBuffer) add(rows ...logRow) {
	for _, row := range rows {
		if at, ok := b.at[row.id]; ok {
			b.rows[at-b.first] = row
			continue
		}
		b.at[row.id] = b.first + len(b.rows)
		b.rows = append(b.rows, row)
		if len(b.rows) > b.most {
			delete(b.at, b.rows[0].id)
			b.rows = b.rows[1:]
			b.first++
			b.dropped++
		}
	}
}

// drain empties the buffer. It returns the HTML of the rows and the number of rows dropped before them.
func (b *rowBuffer) drain() (lines []string, dropped int) {
	lines = make([]string, 0, len(b.rows))
	for _, row := range b.rows {
		lines = append(lines, row.html)
	}
	dropped = b.dropped
	*b = rowBuffer{most: b.most, at: map[string]int{}}
	return lines, dropped
}
